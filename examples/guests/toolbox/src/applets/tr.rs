//! `tr`.

use std::io::{Read, Write};

use super::{Context, Failure, Status};
use crate::cmdline;
use crate::shell::pattern::is_of_class;

/// `tr [-cds] SET1 [SET2]`.
pub(super) fn run(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "cCds", &[])?;
    let Some(first) = options.operands.first() else {
        return Err(Failure::from("usage: tr [-cds] SET1 [SET2]".to_owned()));
    };
    let first = set(first);
    let second: Vec<char> = options.operands.get(1).map(|text| set(text)).unwrap_or_default();
    if second.is_empty() && !options.has("d") && !options.has("s") {
        return Err(Failure::from("needs a second set, or -d or -s".to_owned()));
    }
    let is_complement = options.has("c") || options.has("C");
    let is_in_first = |letter: char| first.contains(&letter) != is_complement;
    let squeezed: &[char] = if second.is_empty() { &first } else { &second };
    let mut bytes = Vec::new();
    context.input.read_to_end(&mut bytes)?;
    let mut text = String::new();
    let mut last = None;
    for letter in String::from_utf8_lossy(&bytes).chars() {
        if options.has("d") && is_in_first(letter) {
            continue;
        }
        let mut new = letter;
        if !options.has("d") && is_in_first(letter) {
            // The last letter of the second set stands for all that are missing.
            let index =
                if is_complement { usize::MAX } else { first.iter().rposition(|known| *known == letter).unwrap_or(0) };
            new = second.get(index).or(second.last()).copied().unwrap_or(letter);
        }
        let is_squeezed = if second.is_empty() { is_in_first(new) } else { squeezed.contains(&new) };
        if options.has("s") && last == Some(new) && is_squeezed {
            continue;
        }
        last = Some(new);
        text.push(new);
    }
    context.output.write_all(text.as_bytes())?;
    Ok(0)
}

/// The letters of `a-z`, `[:upper:]`, `\n`.
fn set(text: &str) -> Vec<char> {
    let letters: Vec<char> = text.chars().collect();
    let mut set = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        if letters[at..].starts_with(&['[', ':'])
            && let Some(end) = (at + 2..letters.len()).find(|end| letters[*end..].starts_with(&[':', ']']))
        {
            let class: String = letters[at + 2..end].iter().collect();
            set.extend((0..128u8).map(char::from).filter(|letter| is_of_class(&class, *letter)));
            at = end + 2;
            continue;
        }
        let (low, after) = one(&letters, at);
        at = after;
        if letters.get(at) == Some(&'-') && at + 1 < letters.len() {
            let (high, after) = one(&letters, at + 1);
            set.extend(low..=high);
            at = after;
        } else {
            set.push(low);
        }
    }
    set
}

/// The letter at a place, and the place behind it.
fn one(letters: &[char], at: usize) -> (char, usize) {
    let ['\\', rest @ ..] = &letters[at..] else { return (letters[at], at + 1) };
    let digits: String = rest.iter().take(3).take_while(|letter| letter.is_digit(8)).collect();
    if let Ok(code) = u8::from_str_radix(&digits, 8) {
        return (char::from(code), at + 1 + digits.len());
    }
    match rest.first() {
        Some('n') => ('\n', at + 2),
        Some('t') => ('\t', at + 2),
        Some('r') => ('\r', at + 2),
        Some(other) => (*other, at + 2),
        None => ('\\', at + 1),
    }
}
