//! May a pod run on a node? (META-10, DISR-05)

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::selector::{Labels, Operator, Requirement, Selector, SelectorError};

/// A taint of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taint {
    /// `key`.
    pub key: String,
    /// `value`.
    pub value: String,
    /// `effect`, as in `NoSchedule`.
    pub effect: String,
}

/// A toleration of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toleration {
    /// `key`; empty is any.
    pub key: String,
    /// `operator`.
    pub operator: TolerationOperator,
    /// `value`.
    pub value: String,
    /// `effect`; empty is any.
    pub effect: String,
    /// `tolerationSeconds`: how long a `NoExecute` taint is tolerated; none is for ever, 0 and less not at all.
    pub seconds: Option<i64>,
}

/// How a toleration compares values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TolerationOperator {
    /// The same value.
    #[default]
    Equal,
    /// Any value.
    Exists,
    /// One that this version doesn't know, such as those behind a gate that is off; tolerates nothing.
    Unknown,
}

impl Toleration {
    /// Is a taint nothing to this pod?
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let any_or = |wanted: &str, is: &str| wanted.is_empty() || wanted == is;
        any_or(&self.effect, &taint.effect)
            && any_or(&self.key, &taint.key)
            && match self.operator {
                TolerationOperator::Equal => self.value == taint.value,
                TolerationOperator::Exists => true,
                TolerationOperator::Unknown => false,
            }
    }
}

/// The first taint that keeps a pod off a node. `PreferNoSchedule` keeps nobody off.
pub fn first_untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    let forbids = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    taints.iter().filter(forbids).find(|taint| !tolerations.iter().any(|toleration| toleration.tolerates(taint)))
}

/// How long a pod may stay in spite of the `NoExecute` taints of its node: none is for ever.
///
/// Every such taint must be tolerated, or the pod goes at once. Of the tolerations that are used, the shortest counts.
pub fn tolerated_seconds(taints: &[Taint], tolerations: &[Toleration]) -> Option<i64> {
    let mut shortest = None;
    for taint in taints.iter().filter(|taint| taint.effect == "NoExecute") {
        let mut used = tolerations.iter().filter(|toleration| toleration.tolerates(taint)).peekable();
        if used.peek().is_none() {
            return Some(0);
        }
        let least = used.filter_map(|toleration| toleration.seconds).min();
        shortest = shortest.into_iter().chain(least).min();
    }
    shortest.map(|seconds| seconds.max(0))
}

/// What a pod wants of its node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDemand {
    /// `nodeSelector`.
    pub node_selector: Labels,
    /// Terms of the required node affinity, one of which must match; none if there is no such affinity.
    pub required_terms: Option<Vec<NodeSelectorTerm>>,
}

/// One of `nodeSelectorTerms`. Without any expression it matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSelectorTerm {
    /// `matchExpressions`.
    pub expressions: Vec<NodeSelectorRequirement>,
    /// `matchFields`; the node's name is the only field.
    pub fields: Vec<NodeSelectorRequirement>,
}

/// A requirement as written, not checked yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSelectorRequirement {
    /// `key`.
    pub key: String,
    /// `operator`, as in `In` or `Gt`.
    pub operator: String,
    /// `values`.
    pub values: Vec<String>,
}

impl NodeDemand {
    /// Does a node fit?
    ///
    /// # Errors
    /// If no term matches and one of them is malformed.
    pub fn matches(&self, node_name: &str, labels: &Labels) -> Result<bool, SelectorError> {
        if !Selector::of_labels(&self.node_selector).matches(labels) {
            return Ok(false);
        }
        let Some(terms) = &self.required_terms else { return Ok(true) };
        let mut malformed = None;
        for term in terms {
            match term.matches(node_name, labels) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => malformed = malformed.or(Some(error)),
            }
        }
        malformed.map_or(Ok(false), Err)
    }
}

impl NodeSelectorTerm {
    fn matches(&self, node_name: &str, labels: &Labels) -> Result<bool, SelectorError> {
        let expressions: Vec<Requirement> =
            self.expressions.iter().map(NodeSelectorRequirement::on_labels).collect::<Result<_, _>>()?;
        let mut fields_match = true;
        for field in &self.fields {
            // Fields of a node without a name are not looked at, as upstream has it.
            fields_match &= field.matches_name(node_name)? || node_name.is_empty();
        }
        let is_empty = self.expressions.is_empty() && self.fields.is_empty();
        Ok(!is_empty && fields_match && Selector::new(expressions).matches(labels))
    }
}

impl NodeSelectorRequirement {
    fn on_labels(&self) -> Result<Requirement, SelectorError> {
        let operator = match self.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            "Gt" => Operator::GreaterThan,
            "Lt" => Operator::LessThan,
            other => return Err(SelectorError::new(alloc::format!("{other:?} is not a node selector operator"))),
        };
        Requirement::new(&self.key, operator, self.values.clone())
    }

    fn matches_name(&self, node_name: &str) -> Result<bool, SelectorError> {
        let [value] = self.values.as_slice() else {
            return Err(SelectorError::new(alloc::format!("field {:?} needs one value", self.key)));
        };
        let is = if self.key == "metadata.name" { node_name } else { "" };
        match self.operator.as_str() {
            "In" => Ok(value == is),
            "NotIn" => Ok(value != is),
            other => {
                Err(SelectorError::new(alloc::format!("{other:?} is not an operator for fields: use In or NotIn")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    fn taint(key: &str, effect: &str) -> Taint {
        Taint { key: key.into(), value: "v".into(), effect: effect.into() }
    }

    #[test]
    fn a_taint_keeps_pods_off_that_do_not_tolerate_it() {
        let taints = [taint("soft", "PreferNoSchedule"), taint("gpu", "NoSchedule"), taint("down", "NoExecute")];
        let exists =
            |key: &str| Toleration { key: key.into(), operator: TolerationOperator::Exists, ..Toleration::default() };
        assert_eq!(first_untolerated(&taints, &[]), Some(&taints[1]));
        assert_eq!(first_untolerated(&taints, &[exists("gpu")]), Some(&taints[2]));
        assert_eq!(first_untolerated(&taints, &[exists("")]), None);
    }

    #[test]
    fn one_term_must_match_and_an_empty_one_never_does() {
        let labels = Labels::from([("zone".to_string(), "a".to_string())]);
        let term = |value: &str| NodeSelectorTerm {
            expressions: vec![NodeSelectorRequirement {
                key: "zone".into(),
                operator: "In".into(),
                values: vec![value.into()],
            }],
            ..NodeSelectorTerm::default()
        };
        let demand = |terms| NodeDemand { required_terms: Some(terms), ..NodeDemand::default() };
        assert_eq!(demand(vec![term("b"), term("a")]).matches("n1", &labels), Ok(true));
        assert_eq!(demand(vec![NodeSelectorTerm::default()]).matches("n1", &labels), Ok(false));
        assert_eq!(demand(vec![]).matches("n1", &labels), Ok(false));
        assert_eq!(NodeDemand::default().matches("n1", &labels), Ok(true));
    }

    #[test]
    fn the_name_of_a_node_that_has_one_must_match() {
        let field =
            NodeSelectorRequirement { key: "metadata.name".into(), operator: "In".into(), values: vec!["n1".into()] };
        let term = NodeSelectorTerm { fields: vec![field], ..NodeSelectorTerm::default() };
        let demand = NodeDemand { required_terms: Some(vec![term]), ..NodeDemand::default() };
        let fits = |name| demand.matches(name, &Labels::new());
        assert_eq!((fits("n1"), fits("n2"), fits("")), (Ok(true), Ok(false), Ok(true)));
    }
}
