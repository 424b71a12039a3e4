//! What is wrong with an object, in the words of Kubernetes.

use core::fmt;

/// A field that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldError {
    /// The field, as in `spec.containers[0].image`.
    pub field: String,
    /// What sort of rule it breaks.
    pub kind: ErrorKind,
    /// The rule; empty where the kind says all.
    pub detail: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message())
    }
}

impl FieldError {
    /// The error without the field.
    pub fn message(&self) -> String {
        match self.detail.as_str() {
            "" => self.kind.label().into(),
            detail => format!("{}: {detail}", self.kind.label()),
        }
    }
}

/// The sorts of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// Something named does not exist.
    NotFound,
    /// Something that must be there is not.
    Required,
    /// Something stands there twice.
    Duplicate,
    /// A malformed value.
    Invalid,
    /// A value that is not one of a list.
    NotSupported,
    /// A value that must not be given here.
    Forbidden,
    /// Too many bytes.
    TooLong,
    /// Too many items.
    TooMany,
}

impl ErrorKind {
    /// As in the `reason` of a status' cause, shortened.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::Required => "Required",
            Self::Duplicate => "Duplicate",
            Self::Invalid => "Invalid",
            Self::NotSupported => "NotSupported",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "TooLong",
            Self::TooMany => "TooMany",
        }
    }

    /// For people, as kubectl prints it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }
}

/// The path of a field.
#[derive(Clone, Debug)]
pub(super) struct Path(String);

impl Path {
    pub(super) fn new(root: &str) -> Self {
        Self(root.into())
    }

    /// A field of an object.
    pub(super) fn child(&self, name: &str) -> Self {
        Self(format!("{}.{name}", self.0))
    }

    /// An item of a list.
    pub(super) fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// An entry of a map.
    pub(super) fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }
}

/// What has been found so far.
#[derive(Debug, Default)]
pub(super) struct Errors {
    list: Vec<FieldError>,
}

impl Errors {
    pub(super) fn push(&mut self, kind: ErrorKind, path: &Path, detail: impl Into<String>) {
        self.list.push(FieldError { kind, field: path.0.clone(), detail: detail.into() });
    }

    pub(super) fn required(&mut self, path: &Path, detail: &str) {
        self.push(ErrorKind::Required, path, detail);
    }

    pub(super) fn invalid(&mut self, path: &Path, detail: impl Into<String>) {
        self.push(ErrorKind::Invalid, path, detail);
    }

    /// One error per broken rule of a name.
    pub(super) fn invalid_all(&mut self, path: &Path, details: Vec<String>) {
        for detail in details {
            self.invalid(path, detail);
        }
    }

    pub(super) fn invalid_if(&mut self, broken: bool, path: &Path, detail: &str) {
        if broken {
            self.invalid(path, detail);
        }
    }

    pub(super) fn forbidden(&mut self, path: &Path, detail: impl Into<String>) {
        self.push(ErrorKind::Forbidden, path, detail);
    }

    pub(super) fn forbidden_if(&mut self, broken: bool, path: &Path, detail: &str) {
        if broken {
            self.forbidden(path, detail);
        }
    }

    pub(super) fn duplicate(&mut self, path: &Path) {
        self.push(ErrorKind::Duplicate, path, "");
    }

    pub(super) fn not_found(&mut self, path: &Path) {
        self.push(ErrorKind::NotFound, path, "");
    }

    pub(super) fn too_long(&mut self, path: &Path, most: usize) {
        self.push(ErrorKind::TooLong, path, format!("may not be more than {most} bytes"));
    }

    pub(super) fn too_many(&mut self, path: &Path, most: usize) {
        self.push(ErrorKind::TooMany, path, format!("must have at most {most} items"));
    }

    pub(super) fn not_supported(&mut self, path: &Path, values: &[&str]) {
        let quoted: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
        self.push(ErrorKind::NotSupported, path, format!("supported values: {}", quoted.join(", ")));
    }

    /// A text that must be one of a list.
    pub(super) fn one_of(&mut self, value: &str, path: &Path, values: &[&str]) {
        if !values.contains(&value) {
            self.not_supported(path, values);
        }
    }

    /// The same for a text that must be there.
    pub(super) fn required_one_of(&mut self, value: Option<&str>, path: &Path, values: &[&str]) {
        match value.unwrap_or_default() {
            "" => self.required(path, ""),
            value => self.one_of(value, path, values),
        }
    }

    /// A text that must be there.
    pub(super) fn required_text(&mut self, value: Option<&str>, path: &Path, detail: &str) {
        if value.unwrap_or_default().is_empty() {
            self.required(path, detail);
        }
    }

    /// A number that must lie in a range.
    pub(super) fn in_range(&mut self, value: i64, low: i64, high: i64, path: &Path) {
        if value < low || value > high {
            self.invalid(path, format!("must be between {low} and {high}, inclusive"));
        }
    }

    /// A number that must not be negative.
    pub(super) fn not_negative(&mut self, value: i64, path: &Path) {
        self.invalid_if(value < 0, path, "must be greater than or equal to 0");
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// All, in the order of their fields.
    pub(super) fn into_sorted(mut self) -> Vec<FieldError> {
        self.list.sort();
        self.list
    }
}
