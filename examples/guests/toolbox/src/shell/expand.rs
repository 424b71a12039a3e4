//! From the words of a script to the words that a command sees: braces, parameters, substitutions, splitting, file names.

use std::rc::Rc;

use brush_parser::word::{
    self, BraceExpression, BraceExpressionMember, BraceExpressionOrText, Parameter, ParameterExpr, SpecialParameter,
    TildeExpr, WordPiece,
};

use super::fields::{Field, Fields};
use super::{Flow, Shell, pattern, word_options};
use crate::stream::Stream;

impl Shell {
    /// All expansions: a word may become none, one or many.
    pub(crate) fn expand_fields(&mut self, word: &str) -> Result<Vec<String>, Flow> {
        let mut expanded = Vec::new();
        for word in self.expand_braces(word)? {
            let separators = self.vars.value("IFS").unwrap_or(" \t\n").to_owned();
            for field in self.expand_word(&word, Some(separators))? {
                let files = if self.options.noglob { Vec::new() } else { pattern::files(&self.cwd, &field.pattern) };
                if files.is_empty() {
                    expanded.push(field.text);
                } else {
                    expanded.extend(files);
                }
            }
        }
        Ok(expanded)
    }

    /// Expansions without splitting or file names: assignments, targets of redirections, the word of `case`.
    pub(crate) fn expand_text(&mut self, word: &str) -> Result<String, Flow> {
        Ok(self.expand_word(word, None)?.into_iter().next().unwrap_or_default().text)
    }

    /// As [`Shell::expand_text`], with what was quoted behind backslashes.
    pub(crate) fn expand_pattern(&mut self, word: &str) -> Result<String, Flow> {
        Ok(self.expand_word(word, None)?.into_iter().next().unwrap_or_default().pattern)
    }

    /// The text of a here-document or an arithmetic expression: as if in double quotes.
    pub(crate) fn expand_document(&mut self, text: &str) -> Result<String, Flow> {
        let pieces = word::parse_heredoc(text, &word_options()).map_err(|_| self.bad_substitution(text))?;
        let mut fields = Fields::new(None);
        for piece in pieces {
            match piece.piece {
                WordPiece::DoubleQuotedSequence(inner) => {
                    for piece in inner {
                        self.expand_piece(&piece.piece, &mut fields, true)?;
                    }
                }
                piece => self.expand_piece(&piece, &mut fields, true)?,
            }
        }
        Ok(fields.finish().into_iter().next().unwrap_or_default().text)
    }

    /// The pieces of one word, added to `fields`.
    pub(super) fn expand_into(&mut self, word: &str, fields: &mut Fields, is_quoted: bool) -> Result<(), Flow> {
        let pieces = word::parse(word, &word_options()).map_err(|_| self.bad_substitution(word))?;
        for piece in pieces {
            self.expand_piece(&piece.piece, fields, is_quoted)?;
        }
        Ok(())
    }

    /// What a script writes to its output, without the line ends at its end.
    pub(super) fn substitute(&mut self, script: &str) -> Result<String, Flow> {
        let sink = Rc::default();
        let output = Stream::Sink(Rc::clone(&sink));
        let status = self.in_subshell(|subshell| {
            subshell.fds.open(1, output);
            subshell.run_text(script)
        })?;
        self.status = status;
        self.substitution = Some(status);
        let bytes = sink.take();
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    fn expand_word(&mut self, word: &str, separators: Option<String>) -> Result<Vec<Field>, Flow> {
        let mut fields = Fields::new(separators);
        self.expand_into(word, &mut fields, false)?;
        Ok(fields.finish())
    }

    fn expand_piece(&mut self, piece: &WordPiece, fields: &mut Fields, is_quoted: bool) -> Result<(), Flow> {
        match piece {
            WordPiece::Text(text) if is_quoted => fields.push_quoted(text),
            WordPiece::Text(text) => fields.push_literal(text),
            WordPiece::SingleQuotedText(text) | WordPiece::AnsiCQuotedText(text) => fields.push_quoted(text),
            WordPiece::EscapeSequence(escape) => {
                let escaped = escape.strip_prefix('\\').unwrap_or(escape);
                // A backslash before a line end joins the lines.
                if escaped != "\n" {
                    fields.push_quoted(escaped);
                }
            }
            WordPiece::DoubleQuotedSequence(pieces) | WordPiece::GettextDoubleQuotedSequence(pieces) => {
                let is_only_arguments = matches!(&pieces[..], [only] if is_all_arguments(&only.piece));
                // "$@" without arguments is no field at all; any other pair of quotes is at least an empty one.
                if !is_only_arguments {
                    fields.push_quoted("");
                }
                for piece in pieces {
                    self.expand_piece(&piece.piece, fields, true)?;
                }
            }
            WordPiece::TildeExpansion(tilde) => match tilde {
                TildeExpr::Home => {
                    let home = self.vars.value("HOME").unwrap_or("/root").to_owned();
                    fields.push_quoted(&home);
                }
                TildeExpr::UserHome(user) => fields.push_quoted(&format!("~{user}")),
                TildeExpr::WorkingDir => fields.push_quoted(&self.cwd.to_string_lossy()),
                TildeExpr::OldWorkingDir => {
                    let old = self.vars.value("OLDPWD").unwrap_or("~-").to_owned();
                    fields.push_quoted(&old);
                }
                TildeExpr::NthDirFromTopOfDirStack { .. } | TildeExpr::NthDirFromBottomOfDirStack { .. } => {
                    fields.push_quoted("~");
                }
            },
            WordPiece::ParameterExpansion(expression) => self.expand_parameter(expression, fields, is_quoted)?,
            WordPiece::CommandSubstitution(script) | WordPiece::BackquotedCommandSubstitution(script) => {
                let value = self.substitute(script)?;
                push(fields, &value, is_quoted);
            }
            WordPiece::ArithmeticExpression(expression) => {
                let value = self.arithmetic(&expression.value)?;
                push(fields, &value.to_string(), is_quoted);
            }
        }
        Ok(())
    }

    fn expand_braces(&self, word: &str) -> Result<Vec<String>, Flow> {
        if !word.contains('{') {
            return Ok(vec![word.to_owned()]);
        }
        match word::parse_brace_expansions(word, &word_options()) {
            Ok(Some(parts)) => Ok(alternatives(&parts)),
            // The word itself is parsed next, and says what is wrong with it.
            Ok(None) | Err(_) => Ok(vec![word.to_owned()]),
        }
    }

    fn bad_substitution(&self, word: &str) -> Flow {
        self.fatal(&format!("syntax error: bad substitution in {word}"))
    }
}

/// Adds the value of an expansion.
pub(super) fn push(fields: &mut Fields, value: &str, is_quoted: bool) {
    if is_quoted {
        fields.push_quoted(value);
    } else {
        fields.push_value(value);
    }
}

/// Every way to choose one member of each brace expression.
fn alternatives(parts: &[BraceExpressionOrText]) -> Vec<String> {
    let mut words = vec![String::new()];
    for part in parts {
        match part {
            BraceExpressionOrText::Text(text) => words.iter_mut().for_each(|word| word.push_str(text)),
            BraceExpressionOrText::Expr(expression) => {
                let members = members(expression);
                words =
                    words.iter().flat_map(|word| members.iter().map(move |member| format!("{word}{member}"))).collect();
            }
        }
    }
    words
}

fn members(expression: &BraceExpression) -> Vec<String> {
    let mut all = Vec::new();
    for member in expression {
        match member {
            BraceExpressionMember::NumberSequence { start, end, increment } => {
                all.extend(steps(*start, *end, *increment).map(|number| number.to_string()));
            }
            BraceExpressionMember::CharSequence { start, end, increment } => {
                let letters = steps(i64::from(u32::from(*start)), i64::from(u32::from(*end)), *increment);
                all.extend(letters.filter_map(|code| char::from_u32(u32::try_from(code).ok()?)).map(String::from));
            }
            BraceExpressionMember::Child(parts) => all.extend(alternatives(parts)),
        }
    }
    all
}

/// From `start` to `end`, both included, up or down.
fn steps(start: i64, end: i64, increment: i64) -> impl Iterator<Item = i64> {
    let size = usize::try_from(increment.unsigned_abs().max(1)).unwrap_or(usize::MAX);
    let distance = start.abs_diff(end);
    (0..=distance)
        .step_by(size)
        .map(move |offset| if start <= end { start + offset as i64 } else { start - offset as i64 })
}

/// Whether a piece is `$@`.
fn is_all_arguments(piece: &WordPiece) -> bool {
    let WordPiece::ParameterExpansion(ParameterExpr::Parameter { parameter, .. }) = piece else { return false };
    matches!(parameter, Parameter::Special(SpecialParameter::AllPositionalParameters { concatenate: false }))
}
