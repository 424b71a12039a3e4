//! Field selectors (POD-12): `status.phase=Running,spec.nodeName!=n1`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::selector::SelectorError;

/// Terms that fields must meet, all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    field: String,
    differs: bool,
    value: String,
}

impl FieldSelector {
    /// Reads the form that is used in queries. In values, `,`, `=` and `\` are written with a `\` before them.
    ///
    /// # Errors
    /// If a term has no operator, or a value is not escaped as it must be.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let terms = split_terms(text).into_iter().filter(|term| !term.is_empty());
        terms.map(Term::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Does an object meet it? `field` gives the value of a field, empty if there is none.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> &'a str) -> bool {
        self.0.iter().all(|term| (field(&term.field) == term.value) != term.differs)
    }

    /// The fields it asks about.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|term| term.field.as_str())
    }
}

impl Term {
    fn parse(text: &str) -> Result<Self, SelectorError> {
        let places = [text.find("!="), text.find('=')];
        let Some(at) = places.into_iter().flatten().min() else {
            return Err(SelectorError::new(format!("no =, == or != in {text:?}")));
        };
        let (field, rest) = text.split_at(at);
        let differs = rest.starts_with("!=");
        let value = rest.strip_prefix("!=").or_else(|| rest.strip_prefix("==")).unwrap_or(&rest[1..]);
        Ok(Self { field: field.into(), differs, value: unescape(value)? })
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(special @ ('\\' | ',' | '=')) => plain.push(special),
                _ => return Err(SelectorError::new(format!("in {value:?}: only \\\\, \\, and \\= may be escaped"))),
            },
            ',' | '=' => return Err(SelectorError::new(format!("in {value:?}: write \\{character} for {character}"))),
            other => plain.push(other),
        }
    }
    Ok(plain)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, Term { field, differs, value }) in self.0.iter().enumerate() {
            let (comma, operator) = (if n > 0 { "," } else { "" }, if *differs { "!=" } else { "=" });
            write!(f, "{comma}{field}{operator}")?;
            for character in value.chars() {
                if matches!(character, '\\' | ',' | '=') {
                    f.write_str("\\")?;
                }
                write!(f, "{character}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn all_terms_must_be_met() {
        let selector = FieldSelector::parse("status.phase=Running,spec.nodeName!=n1").unwrap();
        let on =
            |node: &'static str| selector.matches(move |field| if field == "spec.nodeName" { node } else { "Running" });
        assert!(on("n2"));
        assert!(!on("n1"));
    }

    #[test]
    fn commas_and_equals_signs_are_escaped() {
        let selector = FieldSelector::parse("metadata.name==a\\,b").unwrap();
        assert!(selector.matches(|_| "a,b"));
        assert_eq!(selector.to_string(), "metadata.name=a\\,b");
        assert!(FieldSelector::parse("metadata.name=a=b").is_err());
        assert!(FieldSelector::parse("metadata.name").is_err());
        assert_eq!(FieldSelector::parse("a!b=c").unwrap().fields().next(), Some("a!b"));
    }
}
