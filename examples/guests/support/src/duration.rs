//! Durations as people write them in manifests.

use std::time::Duration;

/// `5`, `0.5`, `300ms`, `5s`, `1m30s`, `2h`; without a unit it is seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is no duration: write something like 500ms, 30s, 1m30s or 2h");
    let mut rest = text;
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let unit_length = tail.find(|letter: char| letter.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_length);
        let factor = match unit {
            "ms" => 0.001,
            "" | "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(wrong()),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        sum = sum.saturating_add(Duration::try_from_secs_f64(number * factor).map_err(|_| wrong())?);
        rest = tail;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(sum) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_written() {
        let cases = [("5", 5000), ("0.5", 500), ("300ms", 300), ("1m30s", 90_000), ("2h", 7_200_000), ("0s", 0)];
        for (text, milliseconds) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "5x", "-1s", "1..2", "five"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
