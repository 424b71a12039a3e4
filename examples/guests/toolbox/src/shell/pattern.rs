//! Patterns: `*`, `?`, `[a-z]`, and the files whose names match.

use std::ops::Range;
use std::path::Path;

/// Whether the pattern matches the whole text. A backslash makes the next letter mean itself.
pub(crate) fn matches(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on when the letters after the last star don't fit: one letter later.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&'*') {
            p += 1;
            retry = Some((p, t));
            continue;
        }
        let step = match (pattern.get(p), text.get(t)) {
            (None, None) => return true,
            (Some(_), Some(letter)) => match_one(&pattern[p..], *letter),
            _ => None,
        };
        match (step, retry) {
            (Some(length), _) => (p, t) = (p + length, t + 1),
            (None, Some((after_star, from))) if from < text.len() => {
                retry = Some((after_star, from + 1));
                (p, t) = (after_star, from + 1);
            }
            (None, _) => return false,
        }
    }
}

/// The shortest beginning of the text that matches.
pub(crate) fn shortest_prefix(pattern: &[char], text: &[char]) -> Option<Range<usize>> {
    (0..=text.len()).find(|end| matches(pattern, &text[..*end])).map(|end| 0..end)
}

/// The longest beginning of the text that matches.
pub(crate) fn longest_prefix(pattern: &[char], text: &[char]) -> Option<Range<usize>> {
    (0..=text.len()).rev().find(|end| matches(pattern, &text[..*end])).map(|end| 0..end)
}

/// The shortest end of the text that matches.
pub(crate) fn shortest_suffix(pattern: &[char], text: &[char]) -> Option<Range<usize>> {
    (0..=text.len()).rev().find(|start| matches(pattern, &text[*start..])).map(|start| start..text.len())
}

/// The longest end of the text that matches.
pub(crate) fn longest_suffix(pattern: &[char], text: &[char]) -> Option<Range<usize>> {
    (0..=text.len()).find(|start| matches(pattern, &text[*start..])).map(|start| start..text.len())
}

/// The names of files that match, sorted; none when the pattern has no special letters or nothing matches.
pub(crate) fn files(cwd: &Path, pattern: &str) -> Vec<String> {
    if !has_special_letters(pattern) {
        return Vec::new();
    }
    let (mut found, rest) = match pattern.strip_prefix('/') {
        Some(rest) => (vec!["/".to_owned()], rest),
        None => (vec![String::new()], pattern),
    };
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    for (index, part) in parts.iter().enumerate() {
        let is_last = index + 1 == parts.len();
        found = found.iter().flat_map(|base| entries(cwd, base, part, is_last)).collect();
    }
    found.sort();
    found
}

/// The entries of the directory `base` whose names match `part`.
fn entries(cwd: &Path, base: &str, part: &str, is_last: bool) -> Vec<String> {
    let join = |name: &str| {
        if base.is_empty() || base.ends_with('/') { format!("{base}{name}") } else { format!("{base}/{name}") }
    };
    if !has_special_letters(part) {
        let path = join(&unescaped(part));
        return if cwd.join(&path).symlink_metadata().is_ok() { vec![path] } else { Vec::new() };
    }
    let Ok(entries) = std::fs::read_dir(cwd.join(base)) else { return Vec::new() };
    let pattern: Vec<char> = part.chars().collect();
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_hidden = name.starts_with('.') && !part.starts_with('.');
        if !is_hidden && matches(&pattern, &name.chars().collect::<Vec<_>>()) {
            let path = join(&name);
            if is_last || cwd.join(&path).is_dir() {
                found.push(path);
            }
        }
    }
    found
}

fn has_special_letters(pattern: &str) -> bool {
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '*' | '?' | '[' => return true,
            _ => {}
        }
    }
    false
}

fn unescaped(pattern: &str) -> String {
    let mut text = String::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        text.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    text
}

/// Whether the pattern's first element matches the letter: the element's length if so.
fn match_one(pattern: &[char], letter: char) -> Option<usize> {
    match pattern {
        ['\\', escaped, ..] => (*escaped == letter).then_some(2),
        ['?', ..] => Some(1),
        ['[', ..] => match bracket(pattern, letter) {
            Some((length, is_in)) => is_in.then_some(length),
            // An opening bracket without its end means itself.
            None => (letter == '[').then_some(1),
        },
        [literal, ..] => (*literal == letter).then_some(1),
        [] => None,
    }
}

/// A bracket expression: its length and whether the letter is in it. None if it has no end.
fn bracket(pattern: &[char], letter: char) -> Option<(usize, bool)> {
    let is_negated = matches!(pattern.get(1), Some('!' | '^'));
    let first = if is_negated { 2 } else { 1 };
    let mut at = first;
    let mut is_in = false;
    loop {
        let mut low = *pattern.get(at)?;
        if low == ']' && at > first {
            return Some((at + 1, is_in != is_negated));
        }
        if low == '[' && pattern.get(at + 1) == Some(&':') {
            let end = (at + 2..pattern.len()).find(|end| pattern[*end..].starts_with(&[':', ']']))?;
            let class: String = pattern[at + 2..end].iter().collect();
            is_in |= is_of_class(&class, letter);
            at = end + 2;
            continue;
        }
        if low == '\\' {
            at += 1;
            low = *pattern.get(at)?;
        }
        let mut high = low;
        if pattern.get(at + 1) == Some(&'-') && pattern.get(at + 2).is_some_and(|end| *end != ']') {
            at += 2;
            high = pattern[at];
        }
        is_in |= (low..=high).contains(&letter);
        at += 1;
    }
}

/// `[:alpha:]` and its kin.
pub(crate) fn is_of_class(class: &str, letter: char) -> bool {
    match class {
        "alpha" => letter.is_alphabetic(),
        "digit" => letter.is_ascii_digit(),
        "alnum" => letter.is_alphanumeric(),
        "upper" => letter.is_uppercase(),
        "lower" => letter.is_lowercase(),
        "space" => letter.is_whitespace(),
        "blank" => matches!(letter, ' ' | '\t'),
        "punct" => letter.is_ascii_punctuation(),
        "xdigit" => letter.is_ascii_hexdigit(),
        "cntrl" => letter.is_control(),
        "print" => !letter.is_control(),
        "graph" => !letter.is_control() && !letter.is_whitespace(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_posix_says() {
        let cases = [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("?", "", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[[:digit:]]*", "7up", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("[", "[", true),
            ("*.tar.*", "x.tar.gz", true),
        ];
        for (pattern, text, expected) in cases {
            let pattern_letters: Vec<char> = pattern.chars().collect();
            let text_letters: Vec<char> = text.chars().collect();
            assert_eq!(matches(&pattern_letters, &text_letters), expected, "{pattern} on {text}");
        }
    }
}
