//! Label selectors (POD-12): `app=web,tier in (front,back),!canary`.

mod parse;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::names::{is_label_value, is_qualified_name};

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// Requirements that labels must meet, all of them. Without any it matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selector {
    /// By key.
    requirements: Vec<Requirement>,
    nothing: bool,
}

/// One requirement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: BTreeSet<String>,
}

/// How the value of a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// Is one of the values.
    In,
    /// Is none of the values, or isn't there.
    NotIn,
    /// `=`
    Equals,
    /// `==`: the same, and printed as it was written.
    DoubleEquals,
    /// `!=`: is another one, or isn't there.
    NotEquals,
    /// Is there.
    Exists,
    /// Isn't there.
    DoesNotExist,
    /// Is a larger number.
    GreaterThan,
    /// Is a smaller number.
    LessThan,
}

/// Why something is no selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorError(String);

impl SelectorError {
    /// With what is wrong.
    pub const fn new(message: String) -> Self {
        Self(message)
    }
}

impl Selector {
    /// Matches nothing: what an absent label selector does.
    pub fn nothing() -> Self {
        Self { nothing: true, ..Self::default() }
    }

    /// Of requirements, in any order.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements, nothing: false }
    }

    /// Reads the form that is used in queries.
    ///
    /// # Errors
    /// If it is malformed, or a key or value can't be one.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::requirements(text).map(Self::new)
    }

    /// Exactly these labels, unchecked: what `nodeSelector` and `matchLabels` of stored objects mean.
    pub fn of_labels(labels: &Labels) -> Self {
        let exactly = |(key, value): (&String, &String)| Requirement {
            key: key.clone(),
            operator: Operator::Equals,
            values: BTreeSet::from([value.clone()]),
        };
        Self::new(labels.iter().map(exactly).collect())
    }

    /// Do labels meet all requirements?
    pub fn matches(&self, labels: &Labels) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    /// A checked requirement.
    ///
    /// # Errors
    /// If the key or a value can't be one, or there are too many or too few values for the operator.
    pub fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, SelectorError> {
        let wrong = |what: &str| Err(SelectorError::new(alloc::format!("key {key:?}: {what}")));
        if !is_qualified_name(key) {
            return wrong("not a label key");
        }
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => return wrong("needs at least one value"),
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => return wrong("takes no values"),
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => {
                return wrong("needs one value");
            }
            Operator::GreaterThan | Operator::LessThan
                if values.len() != 1 || values.iter().any(|value| value.parse::<i64>().is_err()) =>
            {
                return wrong("needs one whole number");
            }
            _ => {}
        }
        if let Some(bad) = values.iter().find(|value| !is_label_value(value)) {
            return Err(SelectorError::new(alloc::format!("key {key:?}: {bad:?} is not a label value")));
        }
        Ok(Self { key: key.into(), operator, values: values.into_iter().collect() })
    }

    /// Do labels meet it?
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => listed,
            Operator::NotIn | Operator::NotEquals => !listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.numbers(value).is_some_and(|(value, bound)| value > bound),
            Operator::LessThan => self.numbers(value).is_some_and(|(value, bound)| value < bound),
        }
    }

    fn numbers(&self, value: Option<&String>) -> Option<(i64, i64)> {
        Some((value?.parse().ok()?, self.values.first()?.parse().ok()?))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, requirement) in self.requirements.iter().enumerate() {
            if n > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.iter().map(String::as_str).collect::<Vec<_>>().join(","));
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for SelectorError {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    #[test]
    fn all_requirements_must_be_met() {
        let selector = Selector::parse("app=web, tier in (front,back), !canary").unwrap();
        assert!(selector.matches(&labels(&[("app", "web"), ("tier", "front")])));
        assert!(!selector.matches(&labels(&[("app", "web"), ("tier", "front"), ("canary", "")])));
        assert!(!selector.matches(&labels(&[("app", "web")])));
    }

    #[test]
    fn nothing_and_everything_are_not_the_same() {
        assert!(Selector::parse("").unwrap().matches(&Labels::new()));
        assert!(!Selector::nothing().matches(&Labels::new()));
    }

    #[test]
    fn it_is_printed_by_key_with_sorted_values() {
        assert_eq!(Selector::parse("x notin (b, a),!n,a>5").unwrap().to_string(), "a>5,!n,x notin (a,b)");
        assert_eq!(Selector::parse("a in (b,,c)").unwrap().to_string(), "a in (,b,c)");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for bad in ["a,,b", "a,", "=b", "a in b", "a in (b", "a>x", "bad key", "a=b c", "!a=b", "a in (b,,)"] {
            assert!(Selector::parse(bad).is_err(), "{bad}");
        }
    }
}
