//! `$X`, `${X:-default}`, `${X%pattern}` and their kin.

use brush_parser::word::{Parameter, ParameterExpr, ParameterTestType, SpecialParameter, SubstringMatchKind};

use super::expand::push;
use super::fields::Fields;
use super::variables::is_name;
use super::{Flow, Shell, pattern};

/// What a parameter stands for.
enum Value {
    Unset,
    One(String),
    /// `$@` and `$*`.
    All {
        values: Vec<String>,
        is_joined: bool,
    },
}

impl Value {
    fn is_set(&self, test: &ParameterTestType) -> bool {
        match (self, test) {
            (Value::Unset, _) => false,
            (_, ParameterTestType::Unset) => true,
            (Value::One(value), ParameterTestType::UnsetOrNull) => !value.is_empty(),
            (Value::All { values, .. }, ParameterTestType::UnsetOrNull) => values.iter().any(|value| !value.is_empty()),
        }
    }

    fn into_text(self) -> String {
        match self {
            Value::Unset => String::new(),
            Value::One(value) => value,
            Value::All { values, .. } => values.join(" "),
        }
    }
}

impl Shell {
    pub(super) fn expand_parameter(
        &mut self,
        expression: &ParameterExpr,
        fields: &mut Fields,
        is_quoted: bool,
    ) -> Result<(), Flow> {
        use ParameterExpr as E;
        match expression {
            E::Parameter { parameter, indirect } => {
                let value = self.checked_value(parameter, *indirect)?;
                self.push_value(value, fields, is_quoted);
            }
            E::UseDefaultValues { parameter, indirect, test_type, default_value } => {
                let value = self.value(parameter, *indirect);
                if value.is_set(test_type) {
                    self.push_value(value, fields, is_quoted);
                } else {
                    self.push_word(default_value.as_deref(), fields, is_quoted)?;
                }
            }
            E::AssignDefaultValues { parameter, indirect, test_type, default_value } => {
                let mut value = self.value(parameter, *indirect);
                if !value.is_set(test_type) {
                    let Parameter::Named(name) = parameter else {
                        return Err(self.fatal(&format!("{parameter}: cannot be assigned to")));
                    };
                    let text = self.expand_text(default_value.as_deref().unwrap_or_default())?;
                    self.assign(name, text.clone())?;
                    value = Value::One(text);
                }
                self.push_value(value, fields, is_quoted);
            }
            E::IndicateErrorIfNullOrUnset { parameter, indirect, test_type, error_message } => {
                let value = self.value(parameter, *indirect);
                if !value.is_set(test_type) {
                    let message = match error_message.as_deref() {
                        Some(message) if !message.is_empty() => self.expand_text(message)?,
                        _ => "parameter null or not set".to_owned(),
                    };
                    return Err(self.fatal(&format!("{}: {message}", bare_name(parameter))));
                }
                self.push_value(value, fields, is_quoted);
            }
            E::UseAlternativeValue { parameter, indirect, test_type, alternative_value } => {
                if self.value(parameter, *indirect).is_set(test_type) {
                    self.push_word(alternative_value.as_deref(), fields, is_quoted)?;
                }
            }
            E::ParameterLength { parameter, indirect } => {
                let length = match self.checked_value(parameter, *indirect)? {
                    Value::All { values, .. } => values.len(),
                    value => value.into_text().chars().count(),
                };
                push(fields, &length.to_string(), is_quoted);
            }
            E::RemoveSmallestSuffixPattern { parameter, indirect, pattern } => {
                self.push_trimmed(
                    parameter,
                    *indirect,
                    pattern.as_deref(),
                    pattern::shortest_suffix,
                    fields,
                    is_quoted,
                )?;
            }
            E::RemoveLargestSuffixPattern { parameter, indirect, pattern } => {
                self.push_trimmed(
                    parameter,
                    *indirect,
                    pattern.as_deref(),
                    pattern::longest_suffix,
                    fields,
                    is_quoted,
                )?;
            }
            E::RemoveSmallestPrefixPattern { parameter, indirect, pattern } => {
                self.push_trimmed(
                    parameter,
                    *indirect,
                    pattern.as_deref(),
                    pattern::shortest_prefix,
                    fields,
                    is_quoted,
                )?;
            }
            E::RemoveLargestPrefixPattern { parameter, indirect, pattern } => {
                self.push_trimmed(
                    parameter,
                    *indirect,
                    pattern.as_deref(),
                    pattern::longest_prefix,
                    fields,
                    is_quoted,
                )?;
            }
            E::Substring { parameter, indirect, offset, length } => {
                let text: Vec<char> = self.checked_value(parameter, *indirect)?.into_text().chars().collect();
                let offset = self.arithmetic(&offset.value)?;
                let length = length.as_ref().map(|length| self.arithmetic(&length.value)).transpose()?;
                push(fields, &substring(&text, offset, length), is_quoted);
            }
            E::ReplaceSubstring { parameter, indirect, pattern, replacement, match_kind } => {
                let text = self.checked_value(parameter, *indirect)?.into_text();
                let pattern = self.expand_pattern(pattern)?;
                let replacement = self.expand_text(replacement.as_deref().unwrap_or_default())?;
                push(fields, &replace(&text, &pattern, &replacement, match_kind), is_quoted);
            }
            E::Transform { parameter, .. }
            | E::UppercaseFirstChar { parameter, .. }
            | E::UppercasePattern { parameter, .. }
            | E::LowercaseFirstChar { parameter, .. }
            | E::LowercasePattern { parameter, .. } => {
                return Err(self.fatal(&format!("{parameter}: this form of expansion is bash's, not POSIX'")));
            }
            E::VariableNames { .. } | E::MemberKeys { .. } => {
                return Err(self.fatal("this form of expansion is bash's, not POSIX'"));
            }
        }
        Ok(())
    }

    /// Sets a variable; a read-only one ends the shell.
    pub(crate) fn assign(&mut self, name: &str, value: String) -> Result<(), Flow> {
        self.vars.set(name, value).map_err(|message| self.fatal(&message))
    }

    fn push_value(&self, value: Value, fields: &mut Fields, is_quoted: bool) {
        match value {
            Value::Unset => push(fields, "", is_quoted),
            Value::One(value) => push(fields, &value, is_quoted),
            Value::All { values, is_joined: true } if is_quoted => {
                let separators = self.vars.value("IFS").unwrap_or(" ");
                let first = separators.chars().next().map(String::from).unwrap_or_default();
                fields.push_quoted(&values.join(&first));
            }
            Value::All { values, .. } => {
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        fields.next_field();
                    }
                    push(fields, value, is_quoted);
                }
            }
        }
    }

    /// The word of `${X:-word}`. Outside of quotes its text is split like a value.
    fn push_word(&mut self, word: Option<&str>, fields: &mut Fields, is_quoted: bool) -> Result<(), Flow> {
        let word = word.unwrap_or_default();
        if is_quoted {
            let text = self.expand_text(word)?;
            fields.push_quoted(&text);
            return Ok(());
        }
        let is_plain = !word.contains(['\'', '"', '\\']);
        if is_plain {
            let text = self.expand_text(word)?;
            fields.push_value(&text);
            return Ok(());
        }
        self.expand_into(word, fields, false)
    }

    fn push_trimmed(
        &mut self,
        parameter: &Parameter,
        is_indirect: bool,
        pattern: Option<&str>,
        found: fn(&[char], &[char]) -> Option<std::ops::Range<usize>>,
        fields: &mut Fields,
        is_quoted: bool,
    ) -> Result<(), Flow> {
        let text: Vec<char> = self.checked_value(parameter, is_indirect)?.into_text().chars().collect();
        let pattern: Vec<char> = self.expand_pattern(pattern.unwrap_or_default())?.chars().collect();
        let cut = found(&pattern, &text).unwrap_or(0..0);
        let left: String = text[..cut.start].iter().chain(&text[cut.end..]).collect();
        push(fields, &left, is_quoted);
        Ok(())
    }

    /// The value; with `set -u` a parameter that isn't set ends the shell.
    fn checked_value(&mut self, parameter: &Parameter, is_indirect: bool) -> Result<Value, Flow> {
        let value = self.value(parameter, is_indirect);
        if self.options.nounset && matches!(value, Value::Unset) {
            return Err(self.fatal(&format!("{}: parameter not set", bare_name(parameter))));
        }
        Ok(value)
    }

    fn value(&self, parameter: &Parameter, is_indirect: bool) -> Value {
        let value = self.direct_value(parameter);
        match value {
            Value::One(name) if is_indirect && is_name(&name) => self.named(&name),
            value => value,
        }
    }

    fn direct_value(&self, parameter: &Parameter) -> Value {
        let one = |number: usize| Value::One(number.to_string());
        match parameter {
            Parameter::Positional(0) => Value::One(self.name.clone()),
            Parameter::Positional(index) => {
                let index = usize::try_from(*index).unwrap_or(usize::MAX) - 1;
                self.args.get(index).map_or(Value::Unset, |value| Value::One(value.clone()))
            }
            Parameter::Named(name) => self.named(name),
            Parameter::Special(special) => match special {
                SpecialParameter::AllPositionalParameters { concatenate } => {
                    Value::All { values: self.args.clone(), is_joined: *concatenate }
                }
                SpecialParameter::PositionalParameterCount => one(self.args.len()),
                SpecialParameter::LastExitStatus => Value::One(self.status.to_string()),
                SpecialParameter::CurrentOptionFlags => Value::One(self.options.letters()),
                // The container's first process, as `$$` in a Linux container says.
                SpecialParameter::ProcessId => one(1),
                SpecialParameter::LastBackgroundProcessId => {
                    self.jobs.last().map_or(Value::Unset, |job| Value::One(job.id.to_string()))
                }
                SpecialParameter::ShellName => Value::One(self.name.clone()),
            },
            // Arrays don't parse in the POSIX mode; an index that does is of no variable that is set.
            Parameter::NamedWithIndex { .. } | Parameter::NamedWithAllIndices { .. } => Value::Unset,
        }
    }

    fn named(&self, name: &str) -> Value {
        self.vars.value(name).map_or(Value::Unset, |value| Value::One(value.to_owned()))
    }
}

fn bare_name(parameter: &Parameter) -> String {
    match parameter {
        Parameter::Named(name) => name.clone(),
        other => other.to_string().trim_start_matches('$').to_owned(),
    }
}

/// `${X:offset:length}`; negative numbers count from the end.
fn substring(text: &[char], offset: i64, length: Option<i64>) -> String {
    let size = text.len() as i64;
    let from_end = |position: i64| if position < 0 { size + position } else { position };
    let start = from_end(offset).clamp(0, size);
    let end = match length {
        None => size,
        Some(length) if length < 0 => size + length,
        Some(length) => start.saturating_add(length),
    };
    let end = end.clamp(start, size);
    text[start as usize..end as usize].iter().collect()
}

/// `${X/pattern/replacement}` and its kin.
fn replace(text: &str, pattern: &str, replacement: &str, kind: &SubstringMatchKind) -> String {
    let text: Vec<char> = text.chars().collect();
    let pattern: Vec<char> = pattern.chars().collect();
    let mut replaced = String::new();
    let mut at = 0;
    while at <= text.len() {
        let may_match = match kind {
            SubstringMatchKind::Prefix => at == 0,
            SubstringMatchKind::Suffix | SubstringMatchKind::FirstOccurrence | SubstringMatchKind::Anywhere => true,
        };
        let rest = &text[at..];
        let found = if !may_match {
            None
        } else if matches!(kind, SubstringMatchKind::Suffix) {
            pattern::matches(&pattern, rest).then_some(rest.len())
        } else {
            pattern::longest_prefix(&pattern, rest).map(|range| range.end)
        };
        match found {
            Some(length) if length > 0 => {
                replaced.push_str(replacement);
                at += length;
                if !matches!(kind, SubstringMatchKind::Anywhere) {
                    replaced.extend(&text[at..]);
                    return replaced;
                }
            }
            _ => {
                replaced.extend(rest.first());
                at += 1;
            }
        }
    }
    replaced
}
