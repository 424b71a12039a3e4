//! POSIX regular expressions, in the words of the `regex-lite` crate.

use regex_lite::{Regex, RegexBuilder};

/// Compiles a basic (`grep`) or an extended (`grep -E`) expression.
pub(super) fn compile(pattern: &str, is_extended: bool, ignores_case: bool) -> Result<Regex, String> {
    RegexBuilder::new(&translate(pattern, is_extended))
        .case_insensitive(ignores_case)
        .build()
        .map_err(|error| format!("bad regular expression '{pattern}': {error}"))
}

/// An expression that matches the text itself.
pub(super) fn literal(text: &str) -> String {
    regex_lite::escape(text)
}

fn translate(pattern: &str, is_extended: bool) -> String {
    let letters: Vec<char> = pattern.chars().collect();
    let mut regex = String::new();
    let mut at = 0;
    while at < letters.len() {
        let letter = letters[at];
        at += 1;
        match letter {
            '\\' => {
                let Some(escaped) = letters.get(at) else {
                    regex.push_str("\\\\");
                    break;
                };
                at += 1;
                match escaped {
                    '(' | ')' | '{' | '}' | '+' | '?' | '|' if !is_extended => regex.push(*escaped),
                    '<' | '>' => regex.push_str("\\b"),
                    'n' => regex.push('\n'),
                    't' => regex.push('\t'),
                    'w' | 'W' | 's' | 'S' | 'b' | 'B' | 'd' => regex.extend(['\\', *escaped]),
                    other => regex.push_str(&literal(&other.to_string())),
                }
            }
            '[' => at = bracket(&letters, at, &mut regex),
            '(' | ')' | '{' | '}' | '+' | '?' | '|' if !is_extended => regex.extend(['\\', letter]),
            // A star with nothing before it means itself.
            '*' if !is_extended && (regex.is_empty() || regex == "^" || regex.ends_with('(')) => regex.push_str("\\*"),
            // In a basic expression an anchor is one only at the ends.
            '^' if !(is_extended || at == 1 || regex.ends_with(['(', '|'])) => regex.push_str("\\^"),
            '$' if !is_extended && at < letters.len() && letters.get(at) != Some(&'\\') => regex.push_str("\\$"),
            other => regex.push(other),
        }
    }
    regex
}

/// A bracket expression: backslashes in it mean themselves. The answer is where it ends.
fn bracket(letters: &[char], start: usize, regex: &mut String) -> usize {
    let mut at = start;
    regex.push('[');
    if letters.get(at) == Some(&'^') {
        regex.push('^');
        at += 1;
    }
    let first = at;
    while let Some(letter) = letters.get(at) {
        at += 1;
        match letter {
            ']' if at - 1 > first => {
                regex.push(']');
                return at;
            }
            '[' if letters.get(at) == Some(&':') => {
                let end = (at..letters.len())
                    .find(|end| letters[*end..].starts_with(&[':', ']']))
                    .map_or(letters.len(), |end| end + 2);
                regex.push('[');
                regex.extend(&letters[at..end]);
                at = end;
            }
            '\\' | '[' | ']' | '&' | '~' => regex.extend(['\\', *letter]),
            other => regex.push(*other),
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_and_extended_expressions_differ_as_posix_says() {
        let cases = [
            ("a+", false, "a+", true),
            ("a+", true, "aaa", true),
            ("^a\\(b\\)*$", false, "abbb", true),
            ("^(a|b)$", true, "b", true),
            ("(a|b)", false, "a", false),
            ("[[:digit:]]\\{2\\}", false, "x42", true),
            ("[\\n]", false, "n", true),
            ("*a", false, "*a", true),
            ("a.c", false, "abc", true),
            ("a\\.c", false, "abc", false),
            ("1$2", false, "1$2", true),
        ];
        for (pattern, is_extended, text, expected) in cases {
            let regex = compile(pattern, is_extended, false).unwrap();
            assert_eq!(regex.is_match(text), expected, "{pattern} on {text}");
        }
    }
}
