//! `$(VAR)` references in commands, arguments and environment values (META-04).

use alloc::string::String;
use core::fmt;

/// Bytes that the words and variables of a process may have together: what Linux gives them.
pub const MOST_BYTES: usize = 2 << 20;

/// How much of [`MOST_BYTES`] is left. Each variable may name the one before it twice, and sixty of them would fill any memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room(usize);

/// There is no room for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl Default for Room {
    fn default() -> Self {
        Self(MOST_BYTES)
    }
}

impl Room {
    /// Takes so many bytes of it.
    ///
    /// # Errors
    /// There are not as many left.
    pub fn take(&mut self, bytes: usize) -> Result<(), TooLong> {
        self.0 = self.0.checked_sub(bytes).ok_or(TooLong)?;
        Ok(())
    }
}

/// Replaces every `$(NAME)` that `lookup` knows. `$$` stands for one `$`; a reference to an unknown name, or one without its
/// closing bracket, stays as it is. What is put in is not expanded again.
///
/// # Errors
/// The result has no room; what it has is taken of that.
pub fn expand<'a>(text: &str, lookup: impl Fn(&str) -> Option<&'a str>, room: &mut Room) -> Result<String, TooLong> {
    let mut expanded = String::new();
    let mut push = |part: &str| -> Result<(), TooLong> {
        room.take(part.len())?;
        expanded.push_str(part);
        Ok(())
    };
    let mut rest = text;
    // From here on nothing is closed. To look for it behind each `$(` would take time by the square of the text's length.
    let last_bracket = text.rfind(')').unwrap_or(0);
    let is_closed = |inner: &&str| text.len() - inner.len() <= last_bracket;
    while let Some(dollar) = rest.find('$') {
        push(&rest[..dollar])?;
        let after = &rest[dollar + 1..];
        if let Some(escaped) = after.strip_prefix('$') {
            push("$")?;
            rest = escaped;
        } else if let Some((name, behind)) =
            after.strip_prefix('(').filter(is_closed).and_then(|inner| inner.split_once(')'))
        {
            match lookup(name) {
                Some(value) => push(value)?,
                None => ["$(", name, ")"].into_iter().try_for_each(&mut push)?,
            }
            rest = behind;
        } else {
            push("$")?;
            rest = after;
        }
    }
    push(rest)?;
    Ok(expanded)
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the process gets more than {MOST_BYTES} bytes of words or variables; shorten values that $(NAME) puts in"
        )
    }
}

impl core::error::Error for TooLong {}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> String {
        let lookup = |name: &str| match name {
            "A" => Some("x"),
            "B" => Some("$(A)"),
            _ => None,
        };
        expand(text, lookup, &mut Room::default()).unwrap()
    }

    #[test]
    fn known_names_are_replaced_once() {
        assert_eq!(expanded("$(A)-$(B)"), "x-$(A)");
    }

    #[test]
    fn unknown_and_unclosed_references_stay() {
        assert_eq!(expanded("$(NONE) $(A $ $A"), "$(NONE) $(A $ $A");
    }

    #[test]
    fn a_doubled_dollar_is_one_dollar() {
        assert_eq!(expanded("$$(A) $$$(A)"), "$(A) $x");
    }

    #[test]
    fn a_reference_that_is_never_closed_stays_however_many_there_are() {
        let open = "$(".repeat(500_000);
        assert_eq!(expanded(&open), open);
        assert_eq!(expanded(&alloc::format!("$(A){open}")), alloc::format!("x{open}"));
    }

    #[test]
    fn what_grows_beyond_all_bounds_is_refused() {
        let mut room = Room::default();
        let mut value = String::from("x");
        let doubled = (0..60).try_for_each(|_| {
            value = expand("$(A)$(A)", |_| Some(&value), &mut room)?;
            Ok(())
        });
        assert_eq!(doubled, Err(TooLong));
        assert!(value.len() < MOST_BYTES);
    }
}
