//! Paths inside volumes.

use super::errors::{Errors, Path};

/// A path that stays where it begins.
pub(super) fn descending(text: &str, path: &Path, errors: &mut Errors) {
    errors.invalid_if(text.starts_with('/'), path, "must be a relative path");
    no_backsteps(text, path, errors);
}

/// The same, and none of the names that atomic updates need for themselves.
pub(super) fn not_reserved(text: &str, path: &Path, errors: &mut Errors) {
    descending(text, path, errors);
    errors.invalid_if(text.starts_with("..") && !text.starts_with("../"), path, "must not start with '..'");
}

/// A path without `..`.
pub(super) fn no_backsteps(text: &str, path: &Path, errors: &mut Errors) {
    errors.invalid_if(has_backsteps(text), path, "must not contain '..'");
}

pub(super) fn has_backsteps(text: &str) -> bool {
    text.split('/').any(|part| part == "..")
}

/// The mode of a file, if it is given.
pub(super) fn file_mode(mode: Option<i32>, path: &Path, errors: &mut Errors) {
    let broken = mode.is_some_and(|mode| !(0..=0o777).contains(&mode));
    errors.invalid_if(broken, path, "must be a number between 0 and 0777 (octal), both inclusive");
}
