//! JSON with lines: one object after the other, as kubectl takes it.
//!
//! YAML has almost all of JSON, but not two objects in a row and not all escapes; it is also slower on long lines.

use serde::de::DeserializeOwned;

use crate::tree::{Entry, Node, Value};
use crate::yaml::{MAX_DEPTH, MAX_VALUES};

/// The objects of a text that is JSON; none if it is something else, such as YAML in flow style.
pub(crate) fn documents(text: &str) -> Option<Vec<(usize, Node)>> {
    let mut scanner = Scanner { text, at: 0, line: 1, values: 0 };
    let mut documents = Vec::new();
    while scanner.peek().is_some() {
        let node = scanner.value(0)?;
        documents.push((documents.len() + 1, node));
    }
    Some(documents)
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    values: usize,
}

impl<'a> Scanner<'a> {
    /// The next byte that is not space, which stays.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            match byte {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b'\r' => {}
                _ => return Some(byte),
            }
            self.at += 1;
        }
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        self.values += 1;
        // Beyond the bounds the YAML reader gets the text, and says what is wrong with it.
        if depth > MAX_DEPTH || self.values > MAX_VALUES {
            return None;
        }
        let first = self.peek()?;
        let line = self.line;
        let value = match first {
            b'{' => Value::Map(self.map(depth)?),
            b'[' => Value::List(self.list(depth)?),
            b'"' => Value::Str(self.string()?),
            _ => self.word()?,
        };
        Some(Node { line, value })
    }

    fn list(&mut self, depth: usize) -> Option<Vec<Node>> {
        self.take(b'[')?;
        let mut items = Vec::new();
        if self.take(b']').is_some() {
            return Some(items);
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.take(b',').is_none() {
                return self.take(b']').map(|()| items);
            }
        }
    }

    fn map(&mut self, depth: usize) -> Option<Vec<Entry>> {
        self.take(b'{')?;
        let mut entries = Vec::new();
        if self.take(b'}').is_some() {
            return Some(entries);
        }
        loop {
            self.peek()?;
            let line = self.line;
            let key = self.string()?;
            self.take(b':')?;
            entries.push(Entry { key, line, value: self.value(depth + 1)? });
            if self.take(b',').is_none() {
                return self.take(b'}').map(|()| entries);
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        self.take(b'"')?;
        let start = self.at - 1;
        loop {
            match *self.text.as_bytes().get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        parsed(self.text.get(start..self.at)?)
    }

    fn word(&mut self) -> Option<Value> {
        let rest = &self.text.as_bytes()[self.at..];
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let length = rest.iter().take_while(|byte| is_part(byte)).count();
        let word = self.text.get(self.at..self.at + length)?;
        self.at += length;
        match word {
            "null" => Some(Value::Null),
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => parsed(word).map(Value::Int).or_else(|| parsed(word).map(Value::Float)),
        }
    }
}

/// The rules for the smallest parts of JSON are long, and known elsewhere.
fn parsed<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_in_a_row_keep_their_lines() {
        let documents = documents("{\"a\": [1, -2.5,\n null],\n \"b\": \"\\ud83d\\ude00\"}\n{}").unwrap();
        assert_eq!(documents.len(), 2);
        let (_, first) = &documents[0];
        assert_eq!(first.text("b"), Some("😀"));
        assert_eq!((first.line_of("a"), first.line_of("a[2]"), first.line_of("b")), (1, 2, 3));
        assert_eq!(documents[1].1.line, 4);
    }

    #[test]
    fn what_is_no_json_is_left_to_yaml() {
        for text in ["{a: 1}", "{\"a\": 1,}", "[1", "a: 1", "\"a", "\"\\", "{\"a\" 1}", "01", "1 2 x", "{\"a\": é}"] {
            assert!(documents(text).is_none(), "{text}");
        }
        assert!(documents(&"[".repeat(100_000)).is_none());
    }
}
