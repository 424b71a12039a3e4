//! `echo` and `printf`.

use std::io::Write;

use super::{Context, Failure, Status};

/// `echo [-neE] [TEXT…]`.
pub(super) fn echo(context: &mut Context<'_>) -> Status {
    let (mut ends_line, mut escapes) = (true, false);
    let mut words = context.operands();
    while let Some((first, rest)) = words.split_first() {
        let letters = first.strip_prefix('-').filter(|letters| !letters.is_empty());
        let Some(letters) = letters.filter(|letters| letters.chars().all(|letter| "neE".contains(letter))) else {
            break;
        };
        for letter in letters.chars() {
            match letter {
                'n' => ends_line = false,
                other => escapes = other == 'e',
            }
        }
        words = rest;
    }
    let mut text = words.join(" ").into_bytes();
    if escapes {
        let (unescaped, stops) = unescape(&text, true);
        text = unescaped;
        ends_line &= !stops;
    }
    if ends_line {
        text.push(b'\n');
    }
    context.output.write_all(&text)?;
    Ok(0)
}

/// `printf FORMAT [ARG…]`: the format is used again as long as there are arguments.
pub(super) fn printf(context: &mut Context<'_>) -> Status {
    let Some((format, args)) = context.operands().split_first() else {
        return Err(Failure::Message(2, "usage: printf FORMAT [ARG…]".to_owned()));
    };
    let (format, _) = unescape(format.as_bytes(), false);
    let mut args = args.iter();
    let mut status = 0;
    loop {
        let left = args.len();
        let mut text = Vec::new();
        let mut rest = &format[..];
        while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
            text.extend(&rest[..at]);
            rest = &rest[at + 1..];
            let (directive, length) = Directive::parse(rest, &mut || args.next());
            rest = &rest[length..];
            if directive.conversion == '%' {
                text.push(b'%');
                continue;
            }
            let (converted, problem) = directive.apply(args.next().map(String::as_str));
            text.extend(converted);
            if let Some(problem) = problem {
                context.complain(problem);
                status = 1;
            }
        }
        text.extend(rest);
        context.output.write_all(&text)?;
        if args.len() == 0 || args.len() == left {
            return Ok(status);
        }
    }
}

/// `%-08.3d` taken apart.
struct Directive {
    is_left: bool,
    is_zeroed: bool,
    sign: &'static str,
    is_alternate: bool,
    width: usize,
    precision: Option<usize>,
    conversion: char,
}

impl Directive {
    /// Reads a directive behind its `%`: it, and how many bytes it is long.
    fn parse<'a>(text: &[u8], next: &mut dyn FnMut() -> Option<&'a String>) -> (Directive, usize) {
        let mut directive = Directive {
            is_left: false,
            is_zeroed: false,
            sign: "",
            is_alternate: false,
            width: 0,
            precision: None,
            conversion: '%',
        };
        let mut at = 0;
        while let Some(flag) = text.get(at) {
            match flag {
                b'-' => directive.is_left = true,
                b'0' => directive.is_zeroed = true,
                b'+' => directive.sign = "+",
                b' ' => directive.sign = " ",
                b'#' => directive.is_alternate = true,
                _ => break,
            }
            at += 1;
        }
        let mut number = |at: &mut usize| {
            if text.get(*at) == Some(&b'*') {
                *at += 1;
                return next().and_then(|value| value.parse().ok()).unwrap_or(0);
            }
            let mut value = 0usize;
            while let Some(digit) = text.get(*at).filter(|byte| byte.is_ascii_digit()) {
                value = value.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
                *at += 1;
            }
            // A format must not be able to take all memory.
            value.min(65_536)
        };
        directive.width = number(&mut at);
        if text.get(at) == Some(&b'.') {
            at += 1;
            directive.precision = Some(number(&mut at));
        }
        while matches!(text.get(at), Some(b'l' | b'h' | b'z' | b'j')) {
            at += 1;
        }
        if let Some(conversion) = text.get(at) {
            directive.conversion = char::from(*conversion);
            at += 1;
        }
        (directive, at)
    }

    /// The converted argument, and what is wrong with it.
    fn apply(&self, arg: Option<&str>) -> (Vec<u8>, Option<String>) {
        let text = arg.unwrap_or_default();
        let mut problem = None;
        let body = match self.conversion {
            's' => self.cut(text.as_bytes().to_vec()),
            'b' => self.cut(unescape(text.as_bytes(), true).0),
            'c' => text.chars().next().map(String::from).unwrap_or_default().into_bytes(),
            'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
                let value = integer(text).unwrap_or_else(|| {
                    problem = Some(format!("{text}: invalid number"));
                    0
                });
                self.integer(value).into_bytes()
            }
            'f' | 'F' | 'e' | 'E' | 'g' | 'G' => {
                let value = if text.is_empty() { Ok(0.0) } else { text.parse::<f64>() };
                let value = value.unwrap_or_else(|_| {
                    problem = Some(format!("{text}: invalid number"));
                    0.0
                });
                self.float(value).into_bytes()
            }
            other => {
                problem = Some(format!("%{other}: invalid directive"));
                Vec::new()
            }
        };
        (self.pad(body), problem)
    }

    fn cut(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.truncate(self.precision.unwrap_or(usize::MAX));
        bytes
    }

    fn integer(&self, value: i64) -> String {
        let (prefix, digits) = match self.conversion {
            'x' => (if self.is_alternate { "0x" } else { "" }, format!("{value:x}")),
            'X' => (if self.is_alternate { "0X" } else { "" }, format!("{value:X}")),
            'o' => (if self.is_alternate { "0" } else { "" }, format!("{value:o}")),
            'u' => ("", (value as u64).to_string()),
            _ => (if value < 0 { "-" } else { self.sign }, value.unsigned_abs().to_string()),
        };
        let width = self.precision.unwrap_or(0);
        let body = format!("{digits:0>width$}");
        // Zeros go between the sign and the number.
        let fill = match self.is_zeroed && !self.is_left && self.precision.is_none() {
            true => self.width.saturating_sub(prefix.len() + body.len()),
            false => 0,
        };
        format!("{prefix}{}{body}", "0".repeat(fill))
    }

    fn float(&self, value: f64) -> String {
        let precision = self.precision.unwrap_or(6);
        let number = match self.conversion {
            'e' | 'E' => {
                let text = format!("{:.precision$e}", value.abs());
                let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let exponent: i32 = exponent.parse().unwrap_or(0);
                format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
            }
            'g' | 'G' => value.abs().to_string(),
            _ => format!("{:.precision$}", value.abs()),
        };
        let sign = if value.is_sign_negative() { "-" } else { self.sign };
        let fill =
            if self.is_zeroed && !self.is_left { self.width.saturating_sub(sign.len() + number.len()) } else { 0 };
        format!("{sign}{}{number}", "0".repeat(fill))
    }

    fn pad(&self, body: Vec<u8>) -> Vec<u8> {
        let fill = vec![b' '; self.width.saturating_sub(String::from_utf8_lossy(&body).chars().count())];
        if self.is_left { [body, fill].concat() } else { [fill, body].concat() }
    }
}

/// Decimal, hexadecimal, octal, or a letter behind a quote.
fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.is_empty() {
        return Some(0);
    }
    if let Some(letter) = text.strip_prefix(['\'', '"']) {
        return letter.chars().next().map(|letter| i64::from(u32::from(letter)));
    }
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let value = if let Some(digits) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        i64::from_str_radix(digits, 16).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        i64::from_str_radix(digits, 8).ok()?
    } else {
        digits.parse().ok()?
    };
    Some(if is_negative { -value } else { value })
}

/// Backslash escapes; in `echo` octal ones begin with `\0`. The answer's second part: `\c` ended the output.
fn unescape(text: &[u8], as_echo: bool) -> (Vec<u8>, bool) {
    let mut plain = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' || at + 1 == text.len() {
            plain.push(text[at]);
            at += 1;
            continue;
        }
        at += 2;
        match text[at - 1] {
            b'n' => plain.push(b'\n'),
            b't' => plain.push(b'\t'),
            b'r' => plain.push(b'\r'),
            b'a' => plain.push(7),
            b'b' => plain.push(8),
            b'e' => plain.push(27),
            b'f' => plain.push(12),
            b'v' => plain.push(11),
            b'\\' => plain.push(b'\\'),
            b'c' => return (plain, true),
            b'x' => plain.push(digits(text, &mut at, 16, 2)),
            b'0' if as_echo => plain.push(digits(text, &mut at, 8, 3)),
            b'0'..=b'7' => {
                at -= 1;
                plain.push(digits(text, &mut at, 8, 3));
            }
            other => plain.extend([b'\\', other]),
        }
    }
    (plain, false)
}

fn digits(text: &[u8], at: &mut usize, base: u32, most: usize) -> u8 {
    let mut value = 0u32;
    for _ in 0..most {
        let Some(digit) = text.get(*at).and_then(|byte| char::from(*byte).to_digit(base)) else { break };
        value = value * base + digit;
        *at += 1;
    }
    (value & 0xff) as u8
}
