//! Files with variables in them, for `fileKeyRef`.
//!
//! A narrow dialect: `NAME='value'`, one a line, the value in single quotes and maybe over several lines, nothing behind it
//! but a comment. No other quoting, so that every shell reads the file in the same way.

use std::fmt;

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvFileError {
    line: usize,
    problem: &'static str,
}

/// The value of the first definition of `key`, if there is one. What stands behind it isn't looked at.
///
/// # Errors
/// If a line before it is not in the dialect.
pub fn env_file_value(text: &str, key: &str) -> Result<Option<String>, EnvFileError> {
    let mut reader = Reader { text, rest: text };
    while let Some((name, value)) = reader.next_definition()? {
        if name == key {
            return Ok(Some(value.to_owned()));
        }
    }
    Ok(None)
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn next_definition(&mut self) -> Result<Option<(&'a str, &'a str)>, EnvFileError> {
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.is_empty() {
                return Ok(None);
            }
            if !self.rest.starts_with('#') {
                return self.definition().map(Some);
            }
            self.rest_of_line();
        }
    }

    fn definition(&mut self) -> Result<(&'a str, &'a str), EnvFileError> {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let Some(name_end) = self.rest[..end].find('=') else { return Err(self.problem("no `=`")) };
        let name = &self.rest[..name_end];
        if name.is_empty() {
            return Err(self.problem("no name before `=`"));
        }
        if name.ends_with(char::is_whitespace) {
            return Err(self.problem("white space before `=`"));
        }
        let behind = &self.rest[name_end + 1..];
        if behind.is_empty() || behind.starts_with(char::is_whitespace) {
            // As in a shell, the variable is empty and what follows is none of its business.
            self.rest = behind;
            self.rest_of_line();
            return Ok((name, ""));
        }
        let Some(quoted) = behind.strip_prefix('\'') else { return Err(self.problem("value not in single quotes")) };
        let Some((value, after)) = quoted.split_once('\'') else { return Err(self.problem("quote not closed")) };
        self.rest = after;
        let trailing = self.rest_of_line().trim();
        if !trailing.is_empty() && !trailing.starts_with('#') {
            return Err(self.problem("something behind the value that is no comment"));
        }
        Ok((name, value))
    }

    /// Takes what is left of the line.
    fn rest_of_line(&mut self) -> &'a str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        line
    }

    fn problem(&self, problem: &'static str) -> EnvFileError {
        let read = &self.text[..self.text.len() - self.rest.len()];
        EnvFileError { line: read.matches('\n').count() + 1, problem }
    }
}

impl fmt::Display for EnvFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}; write NAME='value'", self.line, self.problem)
    }
}

impl std::error::Error for EnvFileError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_definition_counts_and_values_may_span_lines() {
        let text = "# settings\nA='1\n2' # two lines\nA='3'\nB=\n";
        assert_eq!(env_file_value(text, "A"), Ok(Some("1\n2".to_owned())));
        assert_eq!(env_file_value(text, "B"), Ok(Some(String::new())));
        assert_eq!(env_file_value(text, "C"), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let error = env_file_value("A='1'\nB=2\n", "B").unwrap_err();
        assert_eq!(error.to_string(), "line 2: value not in single quotes; write NAME='value'");
        assert_eq!(env_file_value("A='1'\nB=2\n", "A"), Ok(Some("1".to_owned())), "not looked at");
    }
}
