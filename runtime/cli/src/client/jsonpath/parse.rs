//! Reads templates.

use serde_json::Value;

use super::{Filter, Operand, Operator, Piece, Step};

/// Longest first, so that none hides another.
const OPERATORS: [(&str, Operator); 6] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

pub(super) fn template(text: &str) -> Result<Vec<Piece>, String> {
    if !text.contains('{') {
        let path = if text.starts_with(['.', '$', '[', '@']) { text.to_owned() } else { format!(".{text}") };
        return Ok(vec![Piece::Path(whole_path(&path)?)]);
    }
    // The pieces so far, and those that a range is in, with its path.
    let mut pieces = Vec::new();
    let mut outer: Vec<(Vec<Piece>, Vec<Step>)> = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find('{') {
        if begin > 0 {
            pieces.push(Piece::Text(rest[..begin].into()));
        }
        let inner = &rest[begin + 1..];
        let end = end_of_braces(inner).ok_or_else(|| format!("unclosed action in {text:?}"))?;
        let action = inner[..end].trim();
        rest = &inner[end + 1..];
        if let Some(path) = action.strip_prefix("range").filter(|path| path.starts_with([' ', '.', '[', '$', '@'])) {
            outer.push((std::mem::take(&mut pieces), whole_path(path.trim())?));
        } else if action == "end" {
            let (before, path) = outer.pop().ok_or_else(|| format!("{{end}} without {{range}} in {text:?}"))?;
            let inside = std::mem::replace(&mut pieces, before);
            pieces.push(Piece::Range(path, inside));
        } else if action.starts_with(['"', '\'']) {
            let mut reader = Reader { rest: action };
            pieces.push(Piece::Text(reader.quoted()?));
            reader.ends()?;
        } else {
            pieces.push(Piece::Path(whole_path(action)?));
        }
    }
    if !outer.is_empty() {
        return Err(format!("{{range}} without {{end}} in {text:?}"));
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.into()));
    }
    Ok(pieces)
}

/// Where the closing brace stands, outside of quotes.
fn end_of_braces(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (_, '\\') => is_escaped = true,
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '}') => return Some(at),
            _ => {}
        }
    }
    None
}

fn whole_path(text: &str) -> Result<Vec<Step>, String> {
    let mut reader = Reader { rest: text };
    let path = reader.path()?;
    reader.ends()?;
    Ok(path)
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn take(&mut self, wanted: &str) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, wanted: &str) -> Result<(), String> {
        self.rest = self.rest.trim_start();
        if self.take(wanted) { Ok(()) } else { Err(format!("expected {wanted:?} before {:?}", self.rest)) }
    }

    fn ends(&self) -> Result<(), String> {
        if self.rest.trim().is_empty() {
            Ok(())
        } else {
            Err(format!("unrecognized characters in a path: {:?}", self.rest))
        }
    }

    fn path(&mut self) -> Result<Vec<Step>, String> {
        let _ = self.take("$") || self.take("@");
        let mut steps = Vec::new();
        loop {
            if self.take("..") {
                let name = self.name();
                steps.push(Step::Deep(Some(name).filter(|name| !name.is_empty() && name != "*")));
            } else if self.take(".") {
                match self.name().as_str() {
                    // `.` alone is the object, and `.[0]` is `[0]`.
                    "" => {}
                    "*" => steps.push(Step::All),
                    name => steps.push(Step::Field(name.into())),
                }
            } else if self.take("[") {
                steps.push(self.brackets()?);
                self.expect("]")?;
            } else {
                return Ok(steps);
            }
        }
    }

    /// A name after a dot; a backslash takes the meaning from what follows.
    fn name(&mut self) -> String {
        let mut name = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => name.extend(chars.next().map(|(_, c)| c)),
                '.' | '[' | ']' | ')' | '=' | '!' | '<' | '>' | ' ' | ',' | '{' | '}' => {
                    self.rest = &self.rest[at..];
                    return name;
                }
                c => name.push(c),
            }
        }
        self.rest = "";
        name
    }

    fn brackets(&mut self) -> Result<Step, String> {
        self.rest = self.rest.trim_start();
        if self.take("?(") {
            let filter = self.filter()?;
            self.expect(")")?;
            return Ok(Step::Filter(filter));
        }
        if self.take("*") {
            return Ok(Step::All);
        }
        if self.rest.starts_with(['"', '\'']) {
            // Names in quotes are paths too: a dot in a name needs a backslash.
            let mut paths = Vec::new();
            loop {
                paths.push(whole_path(&format!(".{}", self.in_quotes()?))?);
                self.rest = self.rest.trim_start();
                if !self.take(",") {
                    return Ok(Step::Union(paths));
                }
                self.rest = self.rest.trim_start();
            }
        }
        let end = self.rest.find(']').ok_or("unterminated array")?;
        let (inside, rest) = self.rest.split_at(end);
        self.rest = rest;
        let number = |text: &str| text.trim().parse::<i64>().map_err(|_| format!("invalid array index {inside:?}"));
        if !inside.contains(':') {
            return Ok(Step::Items(inside.split(',').map(number).collect::<Result<_, _>>()?));
        }
        let mut parts =
            inside.split(':').map(|part| if part.trim().is_empty() { Ok(None) } else { number(part).map(Some) });
        let mut part = || parts.next().unwrap_or(Ok(None));
        Ok(Step::Slice { from: part()?, to: part()?, step: part()?.unwrap_or(1) })
    }

    fn filter(&mut self) -> Result<Filter, String> {
        let left = self.operand()?;
        self.rest = self.rest.trim_start();
        let Some((_, operator)) = OPERATORS.into_iter().find(|(sign, _)| self.take(sign)) else {
            return match left {
                Operand::Path(path) => Ok(Filter::Exists(path)),
                Operand::Value(_) => Err(format!("a filter needs a path or a comparison, before {:?}", self.rest)),
            };
        };
        Ok(Filter::Compare(left, operator, self.operand()?))
    }

    fn operand(&mut self) -> Result<Operand, String> {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with(['@', '.', '$']) {
            return Ok(Operand::Path(self.path()?));
        }
        if self.rest.starts_with(['"', '\'']) {
            return Ok(Operand::Value(self.quoted()?.into()));
        }
        let end = self.rest.find([')', ' ', '=', '!', '<', '>']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let value: Value = serde_json::from_str(word).map_err(|_| format!("{word:?} is no value to compare with"))?;
        self.rest = rest;
        Ok(Operand::Value(value))
    }

    /// A text in quotes of either kind.
    fn quoted(&mut self) -> Result<String, String> {
        let raw = self.in_quotes()?;
        let mut text = String::new();
        let mut chars = raw.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => text.extend(chars.next().map(|c| match c {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    c => c,
                })),
                c => text.push(c),
            }
        }
        Ok(text)
    }

    /// What stands in quotes, as it stands there.
    fn in_quotes(&mut self) -> Result<&str, String> {
        let text = self.rest;
        let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'')).ok_or("a text in quotes is missing")?;
        let mut is_escaped = false;
        for (at, c) in text.char_indices().skip(1) {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                c if c == quote => {
                    self.rest = &text[at + 1..];
                    return Ok(&text[1..at]);
                }
                _ => {}
            }
        }
        Err(format!("unterminated quoted string {text:?}"))
    }
}
