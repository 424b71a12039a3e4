//! Reading label selectors.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Operator, Requirement, SelectorError};

pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut tokens = Tokens { rest: text };
    let mut requirements = Vec::new();
    if tokens.peek() == Token::End {
        return Ok(requirements);
    }
    loop {
        requirements.push(requirement(&mut tokens)?);
        match tokens.next() {
            Token::End => return Ok(requirements),
            Token::Symbol(",") => {}
            other => return Err(unexpected(other, "`,` or the end")),
        }
    }
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, SelectorError> {
    let absent = tokens.take("!");
    let key = match tokens.next() {
        Token::Word(key) => key,
        other => return Err(unexpected(other, "a label key")),
    };
    if absent {
        return Requirement::new(key, Operator::DoesNotExist, Vec::new());
    }
    if matches!(tokens.peek(), Token::End | Token::Symbol(",")) {
        return Requirement::new(key, Operator::Exists, Vec::new());
    }
    let operator = match tokens.next() {
        Token::Word("in") => Operator::In,
        Token::Word("notin") => Operator::NotIn,
        Token::Symbol("=") => Operator::Equals,
        Token::Symbol("==") => Operator::DoubleEquals,
        Token::Symbol("!=") => Operator::NotEquals,
        Token::Symbol(">") => Operator::GreaterThan,
        Token::Symbol("<") => Operator::LessThan,
        other => return Err(unexpected(other, "one of in, notin, =, ==, !=, <, >")),
    };
    let values = match operator {
        Operator::In | Operator::NotIn => list(tokens)?,
        _ => alloc::vec![value(tokens)?],
    };
    Requirement::new(key, operator, values)
}

/// Values in brackets; one that isn't there is the empty one.
fn list(tokens: &mut Tokens<'_>) -> Result<Vec<String>, SelectorError> {
    if !tokens.take("(") {
        return Err(unexpected(tokens.next(), "`(`"));
    }
    let mut values = Vec::new();
    loop {
        values.push(match tokens.peek() {
            Token::Word(word) => {
                tokens.next();
                word.into()
            }
            _ => String::new(),
        });
        match tokens.next() {
            // As upstream has it, a second comma in a row is no end of a list.
            Token::Symbol(",") if tokens.take(",") => {
                values.push(String::new());
                if tokens.peek() == Token::Symbol(")") {
                    return Err(unexpected(tokens.next(), "a value"));
                }
            }
            Token::Symbol(",") => {}
            Token::Symbol(")") => return Ok(values),
            other => return Err(unexpected(other, "`,` or `)`")),
        }
    }
}

fn value(tokens: &mut Tokens<'_>) -> Result<String, SelectorError> {
    match tokens.peek() {
        Token::End | Token::Symbol(",") => Ok(String::new()),
        Token::Word(word) => {
            tokens.next();
            Ok(word.into())
        }
        other => Err(unexpected(other, "a value")),
    }
}

fn unexpected(token: Token<'_>, wanted: &str) -> SelectorError {
    SelectorError::new(match token {
        Token::End => format!("ends where {wanted} should be"),
        Token::Word(found) | Token::Symbol(found) => format!("found `{found}` where {wanted} should be"),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
    End,
}

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    /// Longer ones first.
    const SYMBOLS: [&'static str; 9] = ["==", "!=", "=", "!", "(", ")", ",", "<", ">"];

    const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

    fn peek(&self) -> Token<'a> {
        Tokens { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token<'a> {
        let text = self.rest.trim_start_matches(Self::SPACE);
        if text.is_empty() {
            self.rest = text;
            return Token::End;
        }
        let symbol = Self::SYMBOLS.iter().find(|symbol| text.starts_with(**symbol)).map(|symbol| symbol.len());
        let is_end = |c: char| Self::SPACE.contains(&c) || "=!(),<>".contains(c);
        let end = symbol.or_else(|| text.find(is_end)).unwrap_or(text.len());
        let (token, rest) = text.split_at(end);
        self.rest = rest;
        if symbol.is_some() { Token::Symbol(token) } else { Token::Word(token) }
    }

    /// Takes a symbol if it comes next.
    fn take(&mut self, symbol: &str) -> bool {
        let comes_next = self.peek() == Token::Symbol(symbol);
        if comes_next {
            self.next();
        }
        comes_next
    }
}
