//! `$(VAR)` references in commands, arguments and environment values (META-04).

use alloc::string::String;

/// Replaces every `$(NAME)` that `lookup` knows. `$$` stands for one `$`; a reference to an unknown name, or one without its
/// closing bracket, stays as it is. What is put in is not expanded again.
pub fn expand<'a>(text: &str, lookup: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    // From here on nothing is closed. To look for it behind each `$(` would take time by the square of the text's length.
    let last_bracket = text.rfind(')').unwrap_or(0);
    let is_closed = |inner: &&str| text.len() - inner.len() <= last_bracket;
    while let Some(dollar) = rest.find('$') {
        expanded.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        if let Some(escaped) = after.strip_prefix('$') {
            expanded.push('$');
            rest = escaped;
        } else if let Some((name, behind)) =
            after.strip_prefix('(').filter(is_closed).and_then(|inner| inner.split_once(')'))
        {
            match lookup(name) {
                Some(value) => expanded.push_str(value),
                None => expanded.extend(["$(", name, ")"]),
            }
            rest = behind;
        } else {
            expanded.push('$');
            rest = after;
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> String {
        expand(text, |name| match name {
            "A" => Some("x"),
            "B" => Some("$(A)"),
            _ => None,
        })
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
}
