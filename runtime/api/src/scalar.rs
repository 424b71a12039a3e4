//! What a plain word of YAML means: as in the dialect that kubectl reads (YAML 1.1 with 1.2's `0o` octals).

use crate::tree::Value;

/// The value of a plain (unquoted) scalar.
pub(crate) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "y" | "Y" | "on" | "On" | "ON" => return Value::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "n" | "N" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Value::Str(text.into());
    }
    integer(text).map(Value::Int).or_else(|| float(text).map(Value::Float)).unwrap_or_else(|| Value::Str(text.into()))
}

/// Decimal, `0x`, `0o` and `0b` with a sign, and YAML 1.1's octal with a leading zero, as in `defaultMode: 0644`.
fn integer(text: &str) -> Option<i64> {
    let text = text.replace('_', "");
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(&text)),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    i64::from_str_radix(&format!("{sign}{digits}"), radix).ok()
}

fn float(text: &str) -> Option<f64> {
    let text = text.replace('_', "");
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(&text);
    let numeric = unsigned.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    let number = text.parse::<f64>().ok()?;
    (numeric && unsigned.bytes().any(|b| b.is_ascii_digit()) && number.is_finite()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_what_kubectl_takes_them_for() {
        let text = |text: &str| Value::Str(text.into());
        let table = [
            ("", Value::Null),
            ("~", Value::Null),
            ("yes", Value::Bool(true)),
            ("off", Value::Bool(false)),
            ("0", Value::Int(0)),
            ("0644", Value::Int(0o644)),
            ("0o17", Value::Int(0o17)),
            ("0x10", Value::Int(16)),
            ("-5", Value::Int(-5)),
            ("+5", Value::Int(5)),
            ("1_000", Value::Int(1000)),
            ("1.5", Value::Float(1.5)),
            ("089", Value::Float(89.0)),
            ("99999999999999999999", Value::Float(1e20)),
            ("1.27.2", text("1.27.2")),
            ("100m", text("100m")),
            ("-", text("-")),
            ("--5", text("--5")),
            ("0x", text("0x")),
            ("nan", text("nan")),
            ("1-2", text("1-2")),
        ];
        for (word, value) in table {
            assert_eq!(plain(word), value, "{word}");
        }
    }
}
