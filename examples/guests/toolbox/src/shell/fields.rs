//! Fields: the words that a command sees, as they come together from pieces of one word.

/// A field as it grows. The pattern is the text with what was quoted behind backslashes, so that it means itself.
#[derive(Debug, Default)]
pub(crate) struct Field {
    pub(crate) text: String,
    pub(crate) pattern: String,
}

/// Collects the fields of a word.
#[derive(Debug)]
pub(crate) struct Fields {
    done: Vec<Field>,
    current: Option<Field>,
    /// What separates fields in the value of an expansion; None: all is one field.
    separators: Option<String>,
    /// White space has ended a field, and a separator that follows belongs to it.
    ended_by_space: bool,
}

impl Fields {
    pub(crate) fn new(separators: Option<String>) -> Fields {
        Fields { done: Vec::new(), current: None, separators, ended_by_space: false }
    }

    /// Text as the script has it, outside of quotes.
    pub(crate) fn push_literal(&mut self, text: &str) {
        let field = self.current.get_or_insert_default();
        field.text.push_str(text);
        field.pattern.push_str(text);
        self.ended_by_space = false;
    }

    /// Text that means itself. Even an empty one makes a field.
    pub(crate) fn push_quoted(&mut self, text: &str) {
        let field = self.current.get_or_insert_default();
        field.text.push_str(text);
        for letter in text.chars() {
            if !letter.is_alphanumeric() && letter != '/' {
                field.pattern.push('\\');
            }
            field.pattern.push(letter);
        }
        self.ended_by_space = false;
    }

    /// The value of an expansion outside of quotes: it is split, and its stars and question marks count.
    pub(crate) fn push_value(&mut self, value: &str) {
        let Some(separators) = self.separators.clone() else {
            if !value.is_empty() {
                self.push_literal(value);
            }
            return;
        };
        for letter in value.chars() {
            if !separators.contains(letter) {
                self.push_literal(letter.encode_utf8(&mut [0; 4]));
            } else if letter.is_ascii_whitespace() {
                if self.current.is_some() {
                    self.end_field();
                    self.ended_by_space = true;
                }
            } else if self.current.is_some() {
                self.end_field();
            } else if self.ended_by_space {
                self.ended_by_space = false;
            } else {
                self.done.push(Field::default());
            }
        }
    }

    /// What comes next belongs to another field, where there may be more than one.
    pub(crate) fn next_field(&mut self) {
        if self.separators.is_some() {
            self.end_field();
        } else {
            self.push_quoted(" ");
        }
    }

    pub(crate) fn finish(mut self) -> Vec<Field> {
        self.end_field();
        self.done
    }

    fn end_field(&mut self) {
        self.done.extend(self.current.take());
    }
}
