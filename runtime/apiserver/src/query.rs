//! The query of a request.

use crate::status::ApiError;

/// Longer ones don't occur; a limit keeps decoding cheap.
const MOST_PARAMETERS: usize = 1024;

/// Parameters in the order given; names may be repeated (`command` of exec is).
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what stands behind the `?`.
    pub(crate) fn parse(text: &str) -> Self {
        // Some clients begin with `?&`.
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(MOST_PARAMETERS);
        Self(pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(k, v)| (plain(k), plain(v))).collect())
    }

    /// The first value of a parameter; none if it is absent or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let first = self.0.iter().find(|(key, _)| key == name);
        first.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Every value of a parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Is it set? As Kubernetes reads it: anything but `false` and `0` is true, an empty value too.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.all(name).next().is_some_and(|value| !matches!(value, "false" | "0"))
    }

    /// A number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let wrong = || ApiError::bad_request(format!("query parameter {name}: {text:?} is not a whole number"));
        text.parse().map(Some).map_err(|_| wrong())
    }

    /// A number that is not negative.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>, ApiError> {
        match self.number(name)? {
            None => Ok(None),
            Some(number) => u64::try_from(number)
                .map(Some)
                .map_err(|_| ApiError::bad_request(format!("query parameter {name}: {number} is negative"))),
        }
    }

    /// Was a dry run asked for?
    pub(crate) fn dry_run(&self) -> Result<bool, ApiError> {
        match self.get("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => Err(ApiError::bad_request(format!("dryRun: {other:?} is not supported, only \"All\" is"))),
        }
    }
}

/// Decodes `%41` and `+`. What is malformed stays as it is.
pub(crate) fn plain(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let hex = |offset: usize| bytes.get(at + offset).and_then(|byte| (*byte as char).to_digit(16));
        match (byte, hex(1), hex(2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
                continue;
            }
            (b'+', ..) => decoded.push(b' '),
            _ => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_flags_are_kubernetes_own() {
        let query = Query::parse("&labelSelector=a%3Db%2Cc&command=ls&command=-l&watch&follow=0&x=%zz%4&s=a+b");
        assert_eq!(query.get("labelSelector"), Some("a=b,c"));
        assert_eq!(query.all("command").collect::<Vec<_>>(), ["ls", "-l"]);
        assert!(query.flag("watch") && !query.flag("follow") && !query.flag("tty"));
        assert_eq!((query.get("x"), query.get("s")), (Some("%zz%4"), Some("a b")));
        assert!(Query::parse("limit=x").count("limit").is_err());
        assert!(Query::parse("limit=-1").count("limit").is_err());
        assert_eq!(Query::parse("limit=").count("limit"), Ok(None));
    }
}
