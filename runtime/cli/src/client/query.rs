//! Paths and queries of requests.

use std::fmt::{self, Display, Write};

/// A query: pairs that are written behind a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(&'static str, String)>);

impl Query {
    /// With another pair.
    pub(crate) fn with(mut self, key: &'static str, value: impl Display) -> Self {
        self.0.push((key, value.to_string()));
        self
    }

    /// With another pair if there is a value.
    pub(crate) fn maybe(self, key: &'static str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// With a flag if it is set.
    pub(crate) fn flag(self, key: &'static str, is_set: bool) -> Self {
        if is_set { self.with(key, true) } else { self }
    }
}

impl Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in self.0.iter().enumerate() {
            let separator = if index == 0 { '?' } else { '&' };
            write!(f, "{separator}{key}={}", encoded(value))?;
        }
        Ok(())
    }
}

/// A text as part of a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_is_encoded() {
        let query = Query::default().with("labelSelector", "a in (b,c)").flag("watch", true).flag("x", false);
        assert_eq!(query.maybe("y", None::<u8>).to_string(), "?labelSelector=a%20in%20%28b%2Cc%29&watch=true");
        assert_eq!(encoded("../a/é"), "..%2Fa%2F%C3%A9");
    }
}
