//! Kubernetes quantities (RES-01): `100m`, `0.1`, `1Gi`, `129e6`.
//!
//! A quantity is an exact number of billionths together with the notation it is printed in. What is smaller than a billionth
//! is rounded away from zero, so that nobody who asks for something gets nothing.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An exact amount. Compares by amount: `1` equals `1000m`.
#[derive(Clone, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    notation: Notation,
    /// Was too long for upstream's 64-bit representation; see [`Quantity::scaled`].
    wide: bool,
    /// As it was typed, if that is a form people expect to see again.
    typed: Option<Box<str>>,
}

/// How a quantity is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notation {
    /// `1500m`, `12M`.
    #[default]
    Decimal,
    /// `12e6`.
    Exponent,
    /// `12Mi`.
    Binary,
}

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// Not a number with an optional suffix.
    Malformed,
    /// A suffix that doesn't exist.
    UnknownSuffix,
    /// A number beyond all use.
    OutOfRange,
}

const NANO: i128 = 1_000_000_000;
const BINARY_MAX: i128 = i64::MAX as i128 * NANO;
/// Digits that always fit upstream's 64-bit representation.
const SHORT_DIGITS: usize = 18;

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, notation: Notation::Decimal, wide: false, typed: None };

    /// A whole number.
    pub const fn new(value: i64, notation: Notation) -> Self {
        Self { nanos: value as i128 * NANO, notation, wide: false, typed: None }
    }

    /// So many thousandths.
    pub const fn from_milli(milli: i64) -> Self {
        Self { nanos: milli as i128 * 1_000_000, notation: Notation::Decimal, wide: false, typed: None }
    }

    /// Reads a quantity as people write it.
    ///
    /// # Errors
    /// If it is none, or too large for any use.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let parts = Parts::split(text)?;
        let (base, exponent) = parts.suffix()?;
        let kept_short = parts.is_short(base, exponent);
        if !parts.has_digits && !kept_short {
            return Err(QuantityError::Malformed);
        }
        let nanos = match base {
            Notation::Binary => parts.binary_nanos(exponent)?,
            Notation::Decimal | Notation::Exponent => parts.decimal_nanos(exponent)?,
        };
        let below_one = !kept_short && nanos > 0 && nanos < NANO;
        let notation = if base == Notation::Binary && below_one { Notation::Decimal } else { base };
        let wide = !kept_short && nanos != BINARY_MAX;
        let typed = (kept_short && parts.is_plain(base, exponent)).then(|| text.into());
        Ok(Self { nanos: if parts.negative { -nanos } else { nanos }, notation, wide, typed })
    }

    /// Whole units, rounded away from zero, and cut to 64 bits.
    pub fn value(&self) -> i64 {
        self.scaled(1).unwrap_or_else(|| self.extreme())
    }

    /// Thousandths, rounded away from zero, and cut to 64 bits.
    pub fn milli_value(&self) -> i64 {
        self.scaled(1000).unwrap_or_else(|| self.extreme())
    }

    /// So many parts of a unit each (1 for units, 1000 for thousandths), rounded away from zero; none if that does not fit 64 bits.
    ///
    /// A negative amount that was written with too many digits or with a fraction of a binary unit comes out as upstream's
    /// arithmetic has it, which is not what it says. No resource may be negative, so nothing is decided by it.
    pub fn scaled(&self, parts: i64) -> Option<i64> {
        let divisor = NANO / i128::from(parts);
        let exact = i64::try_from(div_away_from_zero(self.nanos, divisor)).ok()?;
        if self.nanos >= 0 || !self.wide {
            return Some(exact);
        }
        let (wrapped, divisor) = (self.nanos as i64, i64::try_from(divisor).ok()?);
        Some(wrapped / divisor + i64::from(wrapped % divisor != 0))
    }

    /// The amount in whole thousandths, rounded away from zero.
    pub fn in_milli(&self) -> Self {
        const MICRO: i128 = NANO / 1000;
        let nanos = div_away_from_zero(self.nanos, MICRO) * MICRO;
        let typed = self.typed.clone().filter(|_| nanos == self.nanos);
        Self { nanos, typed, ..*self }
    }

    /// Billionths, exactly.
    pub const fn nanos(&self) -> i128 {
        self.nanos
    }

    /// Is it nothing?
    pub const fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Is it less than nothing?
    pub const fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// -1, 0 or 1.
    pub const fn signum(&self) -> i32 {
        self.nanos.signum() as i32
    }

    /// The sum, in the notation of `self` unless that is zero; none if it is beyond all use.
    pub fn checked_add(&self, other: &Self) -> Option<Self> {
        Some(self.with_nanos(self.nanos.checked_add(other.nanos)?, other))
    }

    /// The difference, in the notation of `self` unless that is zero; none if it is beyond all use.
    pub fn checked_sub(&self, other: &Self) -> Option<Self> {
        Some(self.with_nanos(self.nanos.checked_sub(other.nanos)?, other))
    }

    /// Adds, and stays at the largest amount there is if the sum is beyond that.
    pub fn add_saturating(&mut self, other: &Self) {
        *self = self.with_nanos(self.nanos.saturating_add(other.nanos), other);
    }

    fn with_nanos(&self, nanos: i128, other: &Self) -> Self {
        let notation = if self.is_zero() { other.notation } else { self.notation };
        // As far below zero as above, or what is printed could not be read again.
        Self { nanos: nanos.max(-i128::MAX), notation, wide: self.wide || other.wide, typed: None }
    }

    fn extreme(&self) -> i64 {
        if self.is_negative() { i64::MIN } else { i64::MAX }
    }

    fn fmt_decimal(&self, f: &mut fmt::Formatter<'_>, notation: Notation) -> fmt::Result {
        let (mut digits, mut exponent) = (self.nanos, -9);
        while digits % 10 == 0 {
            digits /= 10;
            exponent += 1;
        }
        // Suffixes come in steps of a thousand and end at E.
        let mut zeros = 0;
        while exponent % 3 != 0 || (notation == Notation::Decimal && exponent > 18) {
            zeros += 1;
            exponent -= 1;
        }
        write!(f, "{digits}{:0<zeros$}", "")?;
        match notation {
            Notation::Exponent if exponent != 0 => write!(f, "e{exponent}"),
            Notation::Exponent => Ok(()),
            _ => f.write_str(DECIMAL_SUFFIXES.iter().find(|(_, e)| *e == exponent).map_or("", |(suffix, _)| suffix)),
        }
    }

    fn fmt_binary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut whole, mut exponent) = (self.nanos / NANO, 0);
        while whole % 1024 == 0 && exponent < 60 {
            whole /= 1024;
            exponent += 10;
        }
        let suffix = BINARY_SUFFIXES.iter().find(|(_, e)| *e == exponent).map_or("", |(suffix, _)| suffix);
        write!(f, "{whole}{suffix}")
    }
}

impl fmt::Display for Quantity {
    /// Canonical form: the largest suffix that leaves a whole number. Short forms are printed as they were typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(typed) = &self.typed {
            return f.write_str(typed);
        }
        if self.is_zero() {
            return f.write_str("0");
        }
        match self.notation {
            // A binary suffix is read up to 64 bits only.
            Notation::Binary
                if !(1024 * NANO..=BINARY_MAX).contains(&self.nanos.saturating_abs()) || self.nanos % NANO != 0 =>
            {
                self.fmt_decimal(f, Notation::Decimal)
            }
            Notation::Binary => self.fmt_binary(f),
            notation => self.fmt_decimal(f, notation),
        }
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "not a quantity: write a number and at most one suffix, as in 100m, 1.5Gi or 12e6",
            Self::UnknownSuffix => "unknown suffix: use one of n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei",
            Self::OutOfRange => "too large: no amount may need more than 64 bits",
        })
    }
}

impl core::error::Error for QuantityError {}

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// A quantity's text, taken apart.
struct Parts<'a> {
    negative: bool,
    /// Digits before the point, without leading zeros.
    whole: &'a str,
    /// Digits behind the point.
    fraction: &'a str,
    suffix: &'a str,
    /// Is there a digit at all? What is kept short may do without: `Ki` is 0.
    has_digits: bool,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Malformed);
        }
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, rest) = take_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), take_digits);
        let has_digits = !(whole.is_empty() && fraction.is_empty());
        Ok(Self { negative, whole: whole.trim_start_matches('0'), fraction, suffix, has_digits })
    }

    /// Notation and exponent, to base 2 for [`Notation::Binary`] and to base 10 otherwise.
    fn suffix(&self) -> Result<(Notation, i32), QuantityError> {
        let known = |table: &[(&str, i32)]| table.iter().find(|(name, _)| *name == self.suffix).map(|(_, e)| *e);
        if let Some(exponent) = known(&DECIMAL_SUFFIXES) {
            return Ok((Notation::Decimal, exponent));
        }
        if let Some(exponent) = known(&BINARY_SUFFIXES) {
            return Ok((Notation::Binary, exponent));
        }
        match self.suffix.strip_prefix(['e', 'E']) {
            // Upstream, too, reads 64 bits and takes 32.
            Some(exponent) => {
                exponent.parse().map(|e: i64| (Notation::Exponent, e as i32)).map_err(|_| QuantityError::Malformed)
            }
            None => Err(QuantityError::UnknownSuffix),
        }
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.bytes().chain(self.fraction.bytes()).map(|digit| digit - b'0')
    }

    fn decimal_nanos(&self, exponent: i32) -> Result<i128, QuantityError> {
        let (mut nanos, mut lost) = (0_i128, false);
        let mut place = i64::from(exponent) + self.whole.len() as i64 - 1;
        for digit in self.digits() {
            if place >= -9 {
                let shifted = nanos.checked_mul(10).and_then(|n| n.checked_add(i128::from(digit)));
                nanos = shifted.ok_or(QuantityError::OutOfRange)?;
            } else {
                lost |= digit != 0;
            }
            place -= 1;
        }
        while nanos != 0 && place >= -9 {
            nanos = nanos.checked_mul(10).ok_or(QuantityError::OutOfRange)?;
            place -= 1;
        }
        nanos.checked_add(i128::from(lost)).ok_or(QuantityError::OutOfRange)
    }

    /// Cut at the largest 64-bit number, as upstream does for binary suffixes only.
    fn binary_nanos(&self, exponent: i32) -> Result<i128, QuantityError> {
        let mut whole = 0_i128;
        for digit in self.whole.bytes() {
            whole = whole.saturating_mul(10).saturating_add(i128::from(digit - b'0'));
        }
        let factor = 1_i128 << exponent;
        let fraction_nanos = self.binary_fraction_nanos(exponent);
        let nanos = whole.saturating_mul(factor).saturating_mul(NANO).saturating_add(fraction_nanos);
        Ok(nanos.min(BINARY_MAX))
    }

    /// What is behind the point times 2 to the exponent, in billionths, rounded up.
    fn binary_fraction_nanos(&self, exponent: i32) -> i128 {
        let mut digits: Vec<u8> = self.fraction.bytes().map(|digit| digit - b'0').collect();
        let mut nanos = 0_i128;
        for _ in 0..exponent {
            let mut carry = 0;
            for digit in digits.iter_mut().rev() {
                (*digit, carry) = ((*digit * 2 + carry) % 10, (*digit * 2 + carry) / 10);
            }
            nanos = nanos * 2 + i128::from(carry);
        }
        for place in 0..9 {
            nanos = nanos * 10 + i128::from(digits.get(place).copied().unwrap_or_default());
        }
        nanos + i128::from(digits.iter().skip(9).any(|digit| *digit != 0))
    }

    /// Would upstream keep it as a 64-bit number?
    fn is_short(&self, notation: Notation, exponent: i32) -> bool {
        let (whole, fraction) = (self.whole.len().max(1), self.fraction.len());
        match notation {
            Notation::Binary => fraction == 0 && whole as i64 <= i64::from(14 - exponent * 3 / 10),
            _ => whole + fraction <= SHORT_DIGITS && i64::from(exponent) - fraction as i64 >= -9,
        }
    }

    /// Is the short text in a form that is printed as typed?
    fn is_plain(&self, notation: Notation, exponent: i32) -> bool {
        if self.whole.is_empty() {
            return false;
        }
        match notation {
            Notation::Binary => self.whole.parse::<u64>().is_ok_and(|number| number % 8 != 0),
            Notation::Decimal | Notation::Exponent => {
                let steps_of_thousand = (i64::from(exponent) - self.fraction.len() as i64) % 3 == 0;
                let zeros_at_end = self.digits().fold(0, |zeros, digit| if digit == 0 { zeros + 1 } else { 0 });
                steps_of_thousand && zeros_at_end < 3
            }
        }
    }
}

fn take_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn div_away_from_zero(number: i128, divisor: i128) -> i128 {
    number / divisor + i128::from(number % divisor != 0) * number.signum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> String {
        Quantity::parse(text).unwrap().to_string()
    }

    #[test]
    fn the_documented_spellings_of_one_amount_are_equal() {
        let amount = Quantity::parse("0.1").unwrap();
        assert_eq!(amount, Quantity::parse("100m").unwrap());
        assert_eq!(amount.milli_value(), 100);
        assert_eq!(amount.value(), 1, "rounded up");
        assert_eq!(Quantity::parse("129e6").unwrap(), Quantity::parse("129M").unwrap());
        assert_eq!(Quantity::parse("123Mi").unwrap().value(), 128_974_848);
    }

    #[test]
    fn printing_takes_the_largest_suffix_that_leaves_a_whole_number() {
        for (typed, canonical) in
            [("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("0.5", "500m"), ("1000k", "1M"), ("1.25e3", "1250")]
        {
            assert_eq!(printed(typed), canonical);
        }
    }

    #[test]
    fn plain_short_forms_are_printed_as_typed() {
        for typed in ["+1m", "00012", "1e3", "128974848", "5.k"] {
            assert_eq!(printed(typed), typed);
        }
    }

    /// `ParseQuantity`: a binary number is kept as typed unless it is a multiple of eight.
    #[test]
    fn multiples_of_eight_are_printed_afresh() {
        for (typed, canonical) in [
            ("0.000000000000000000001Ei", "1152922n"),
            ("+8Ki", "8Ki"),
            ("0016Mi", "16Mi"),
            ("24.Gi", "24Gi"),
            ("+9Ki", "+9Ki"),
            ("Ti", "0"),
        ] {
            assert_eq!(printed(typed), canonical);
        }
    }

    /// `RoundUp`: the notation stays.
    #[test]
    fn thousandths_round_away_from_zero() {
        let table = [("0.0005", "1m"), ("-500u", "-1m"), ("1.0005e0", "1001e-3"), ("+5", "+5"), ("10P", "10P")];
        for (typed, rounded) in table {
            assert_eq!(Quantity::parse(typed).unwrap().in_milli().to_string(), rounded, "{typed}");
        }
    }

    #[test]
    fn nothing_but_a_number_with_a_suffix_is_accepted() {
        for bad in ["", " 1", "1 Ki", "--1", "1..5", "1,5", "1K", "1mm", "1e", "1e1.5", "0x10", "Pi", ".Ei", "-e-20"] {
            assert!(Quantity::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn amounts_at_the_ends_of_what_can_be_held_are_printed_and_read_again() {
        let largest = "170141183460469231731687303715884105727n";
        assert_eq!(printed(largest), largest);
        assert_eq!(Quantity::parse(&largest.replace('n', ".5n")), Err(QuantityError::OutOfRange));
        // All digits, in steps of a thousand: the zeros do not fit any more.
        assert_eq!(printed("17014118346046923173168730371e0"), "17014118346046923173168730371");
        assert_eq!(printed("170141183460469231731687303710e0"), "170141183460469231731687303710");
        for (amount, other) in
            [(largest, largest), ("-1e28", "-1.7e29"), ("9223372036854775807Ki", "8Ei"), ("-8Ei", "-8Ei")]
        {
            let mut sum = Quantity::parse(amount).unwrap();
            for _ in 0..3 {
                sum.add_saturating(&Quantity::parse(other).unwrap());
                assert_eq!(Quantity::parse(&sum.to_string()), Ok(sum.clone()), "{sum}");
            }
        }
    }

    #[test]
    fn a_sum_keeps_the_notation_of_the_first_that_is_not_zero() {
        let sum = |a, b| Quantity::parse(a).unwrap().checked_add(&Quantity::parse(b).unwrap()).unwrap().to_string();
        assert_eq!(sum("1Gi", "1M"), "1074741824");
        assert_eq!(sum("0", "1Gi"), "1Gi");
        assert_eq!(sum("100m", "900m"), "1");
    }
}
