//! `sed`: the commands that people write in one line.

use std::io::Write;

use regex_lite::{Captures, Regex};

use super::{Context, Failure, Status, pattern};
use crate::cmdline;

enum Address {
    Line(usize),
    Last,
    Matches(Regex),
}

enum Action {
    Substitute {
        regex: Regex,
        replacement: Vec<Piece>,
        is_global: bool,
        nth: usize,
        prints: bool,
    },
    Delete,
    Print,
    Number,
    Quit,
    /// `a`, `i`, `c` with their text.
    Append(String),
    Insert(String),
    Change(String),
}

/// A part of a replacement: text, or what a group matched (0: all).
enum Piece {
    Text(String),
    Group(usize),
}

struct Command {
    from: Option<Address>,
    to: Option<Address>,
    is_negated: bool,
    action: Action,
    /// In the lines between `from` and `to`.
    is_inside: bool,
}

/// `sed [-nEri] [-e SCRIPT…] [SCRIPT] [FILE…]`.
pub(super) fn run(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "nErie:", &[("quiet", 'n'), ("in-place", 'i')])?;
    let mut operands = options.operands.clone();
    let mut script: Vec<&str> = options.values("e").collect();
    if script.is_empty() {
        if operands.is_empty() {
            return Err(Failure::from("usage: sed [-nEi] SCRIPT [FILE…]".to_owned()));
        }
        script.push(operands.remove(0));
    }
    let is_extended = options.has("E") || options.has("r");
    let mut commands = Parser { letters: script.join("\n").chars().collect(), at: 0, is_extended }.commands()?;
    let is_quiet = options.has("n");
    if !options.has("i") {
        let mut bytes = Vec::new();
        let status = context.for_each_file(&operands, |_, _, more| {
            bytes.extend(more);
            Ok(())
        })?;
        let text = edit(&mut commands, &String::from_utf8_lossy(&bytes), is_quiet);
        context.output.write_all(text.as_bytes())?;
        return Ok(status);
    }
    for name in operands {
        let bytes = context.read(name)?;
        let text = edit(&mut commands, &String::from_utf8_lossy(&bytes), is_quiet);
        std::fs::write(context.shell.path(name), text)?;
    }
    Ok(0)
}

fn edit(commands: &mut [Command], text: &str, is_quiet: bool) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut output = String::new();
    let ends_line = text.is_empty() || text.ends_with('\n');
    'lines: for (index, line) in lines.iter().enumerate() {
        let is_last = index + 1 == lines.len();
        let mut line = (*line).to_owned();
        let mut after = String::new();
        let mut quits = false;
        for command in &mut *commands {
            if !command.is_due(index + 1, is_last, &line) {
                continue;
            }
            match &command.action {
                Action::Substitute { regex, replacement, is_global, nth, prints } => {
                    if let Some(new) = substitute(&line, regex, replacement, *is_global, *nth) {
                        line = new;
                        if *prints {
                            output.extend([&line, "\n"]);
                        }
                    }
                }
                Action::Delete => {
                    output.push_str(&after);
                    continue 'lines;
                }
                Action::Print => output.extend([&line, "\n"]),
                Action::Number => output.push_str(&format!("{}\n", index + 1)),
                Action::Append(text) => after.extend([text, "\n"]),
                Action::Insert(text) => output.extend([text, "\n"]),
                Action::Change(text) => {
                    output.extend([text, "\n"]);
                    continue 'lines;
                }
                Action::Quit => {
                    quits = true;
                    break;
                }
            }
        }
        if !is_quiet {
            output.push_str(&line);
            if !is_last || ends_line || !after.is_empty() {
                output.push('\n');
            }
        }
        output.push_str(&after);
        if quits {
            break;
        }
    }
    output
}

impl Command {
    fn is_due(&mut self, number: usize, is_last: bool, line: &str) -> bool {
        let is_at = |address: &Address| match address {
            Address::Line(wanted) => *wanted == number,
            Address::Last => is_last,
            Address::Matches(regex) => regex.is_match(line),
        };
        let is_in = match (&self.from, &self.to) {
            (None, _) => true,
            (Some(from), None) => is_at(from),
            (Some(_), Some(to)) if self.is_inside => {
                self.is_inside = !is_at(to) && !matches!(to, Address::Line(last) if *last < number);
                self.is_inside || is_at(to)
            }
            (Some(from), Some(to)) => {
                let begins = is_at(from);
                self.is_inside = begins && !matches!(to, Address::Line(last) if *last <= number);
                begins
            }
        };
        is_in != self.is_negated
    }
}

fn substitute(line: &str, regex: &Regex, replacement: &[Piece], is_global: bool, nth: usize) -> Option<String> {
    let mut new = String::new();
    let mut end = 0;
    let mut has_changed = false;
    for (index, groups) in regex.captures_iter(line).enumerate() {
        let all = groups.get(0)?;
        if index + 1 < nth {
            continue;
        }
        new.push_str(&line[end..all.start()]);
        push_replacement(&mut new, replacement, &groups);
        end = all.end();
        has_changed = true;
        if !is_global {
            break;
        }
    }
    new.push_str(&line[end..]);
    has_changed.then_some(new)
}

fn push_replacement(new: &mut String, replacement: &[Piece], groups: &Captures<'_>) {
    for piece in replacement {
        new.push_str(match piece {
            Piece::Text(text) => text,
            Piece::Group(number) => groups.get(*number).map_or("", |group| group.as_str()),
        });
    }
}

struct Parser {
    letters: Vec<char>,
    at: usize,
    is_extended: bool,
}

impl Parser {
    fn commands(mut self) -> Result<Vec<Command>, String> {
        let mut commands = Vec::new();
        loop {
            self.skip(|letter| letter.is_whitespace() || letter == ';');
            if self.at >= self.letters.len() {
                return Ok(commands);
            }
            let from = self.address()?;
            let to = if from.is_some() && self.take(',') { self.address()? } else { None };
            self.skip(char::is_whitespace);
            let is_negated = self.take('!');
            self.skip(char::is_whitespace);
            let action = self.action()?;
            commands.push(Command { from, to, is_negated, action, is_inside: false });
        }
    }

    fn address(&mut self) -> Result<Option<Address>, String> {
        match self.letters.get(self.at) {
            Some('$') => {
                self.at += 1;
                Ok(Some(Address::Last))
            }
            Some('/') => {
                self.at += 1;
                let pattern = self.until('/')?;
                Ok(Some(Address::Matches(pattern::compile(&pattern, self.is_extended, false)?)))
            }
            Some(digit) if digit.is_ascii_digit() => {
                let digits = self.skip(|letter| letter.is_ascii_digit());
                digits.parse().map(|line| Some(Address::Line(line))).map_err(|_| format!("{digits}: bad line number"))
            }
            _ => Ok(None),
        }
    }

    fn action(&mut self) -> Result<Action, String> {
        let name = self.letters.get(self.at).copied().ok_or("missing command")?;
        self.at += 1;
        let action = match name {
            's' => return self.substitution(),
            'a' | 'i' | 'c' => {
                self.skip(|letter| matches!(letter, ' ' | '\t' | '\\'));
                self.take('\n');
                let text = self.skip(|letter| letter != '\n');
                return Ok(match name {
                    'a' => Action::Append(text),
                    'i' => Action::Insert(text),
                    _ => Action::Change(text),
                });
            }
            'd' => Action::Delete,
            'p' => Action::Print,
            '=' => Action::Number,
            'q' => Action::Quit,
            other => return Err(format!("unsupported command {other}")),
        };
        Ok(action)
    }

    fn substitution(&mut self) -> Result<Action, String> {
        let delimiter = self.letters.get(self.at).copied().ok_or("s: missing delimiter")?;
        self.at += 1;
        let pattern = self.until(delimiter)?;
        let replacement = self.until(delimiter)?;
        let (mut is_global, mut ignores_case, mut prints, mut nth) = (false, false, false, 1);
        for flag in self.skip(|letter| letter.is_ascii_alphanumeric()).chars() {
            match flag {
                'g' => is_global = true,
                'i' | 'I' => ignores_case = true,
                'p' => prints = true,
                digit => nth = digit.to_digit(10).ok_or_else(|| format!("s: unknown flag {digit}"))? as usize,
            }
        }
        let regex = pattern::compile(&pattern, self.is_extended, ignores_case)?;
        Ok(Action::Substitute { regex, replacement: pieces(&replacement), is_global, nth, prints })
    }

    /// The text up to the delimiter, which it may hold behind a backslash.
    fn until(&mut self, delimiter: char) -> Result<String, String> {
        let mut text = String::new();
        while let Some(letter) = self.letters.get(self.at) {
            self.at += 1;
            match letter {
                '\\' => {
                    let escaped = self.letters.get(self.at).copied().unwrap_or('\\');
                    self.at += 1;
                    if escaped != delimiter {
                        text.push('\\');
                    }
                    text.push(escaped);
                }
                letter if *letter == delimiter => return Ok(text),
                letter => text.push(*letter),
            }
        }
        Err(format!("missing {delimiter}"))
    }

    fn take(&mut self, wanted: char) -> bool {
        let is_next = self.letters.get(self.at) == Some(&wanted);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.letters.get(self.at).is_some_and(|letter| is_skipped(*letter)) {
            self.at += 1;
        }
        self.letters[start..self.at].iter().collect()
    }
}

fn pieces(replacement: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut letters = replacement.chars();
    while let Some(letter) = letters.next() {
        let group = match letter {
            '&' => Some(0),
            '\\' => match letters.next() {
                Some('n') => {
                    text.push('\n');
                    None
                }
                Some('t') => {
                    text.push('\t');
                    None
                }
                Some(digit) if digit.is_ascii_digit() => digit.to_digit(10),
                Some(other) => {
                    text.push(other);
                    None
                }
                None => None,
            },
            other => {
                text.push(other);
                None
            }
        };
        if let Some(group) = group {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
            pieces.push(Piece::Group(group as usize));
        }
    }
    pieces.push(Piece::Text(text));
    pieces
}
