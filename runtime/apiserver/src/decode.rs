//! JSON as it comes, with the keys that stand in it twice.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// More are not told.
const MOST_DUPLICATES: usize = 32;

/// A body that was read.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decoded {
    /// What stands in it; of a repeated key, what stands last.
    pub(crate) value: Value,
    /// Paths of keys that are repeated.
    pub(crate) duplicates: Vec<String>,
}

/// Reads one JSON value.
///
/// # Errors
/// If it isn't one.
pub(crate) fn json(bytes: &[u8]) -> Result<Decoded, serde_json::Error> {
    let duplicates = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Node { path: &Path::Root, duplicates: &duplicates }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(Decoded { value, duplicates: duplicates.into_inner() })
}

/// Where the reader is; written out only where there is something to say.
enum Path<'a> {
    Root,
    Field(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

struct Node<'a> {
    path: &'a Path<'a>,
    duplicates: &'a RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let path = Path::Item(self.path, items.len());
            match access.next_element_seed(Node { path: &path, duplicates: self.duplicates })? {
                Some(item) => items.push(item),
                None => return Ok(items.into()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let path = Path::Field(self.path, &key);
            let value = access.next_value_seed(Node { path: &path, duplicates: self.duplicates })?;
            let mut duplicates = self.duplicates.borrow_mut();
            if fields.contains_key(&key) && duplicates.len() < MOST_DUPLICATES {
                duplicates.push(path.to_string());
            }
            drop(duplicates);
            fields.insert(key, value);
        }
        Ok(fields.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_are_named_with_their_path() {
        let text = br#"{"a": 1, "b": [{"c": 1, "c": 2}], "a": -1.5, "d": "\u00e9"}"#;
        let decoded = json(text).expect("it is JSON");
        assert_eq!(decoded.duplicates, ["b[0].c", "a"]);
        assert_eq!(decoded.value, serde_json::json!({"a": -1.5, "b": [{"c": 2}], "d": "é"}));
    }

    #[test]
    fn what_is_no_json_or_too_deep_is_an_error() {
        for text in ["", "{", "{} {}", "nul", "\u{1}"] {
            assert!(json(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(json("[".repeat(100_000).as_bytes()).is_err());
        assert!(json(&[0xff, 0xfe]).is_err());
    }
}
