//! The forms that names have: each function gives the rules that a name breaks.

use core::net::IpAddr;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
    and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
    must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const SUBDOMAIN_UNDERSCORE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-', \
    '_' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME_PART: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
    'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used \
    for validation is '[-A-Za-z0-9]+')";
const VARIABLE: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";

type Broken = Vec<String>;

fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Begins and ends with `edge`, with `edge` or one of `inner` between.
fn is_word(text: &str, edge: fn(u8) -> bool, inner: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    edge(*first) && edge(*last) && bytes.iter().all(|byte| edge(*byte) || inner.contains(byte))
}

fn is_label(text: &str) -> bool {
    is_word(text, is_lower, b"-")
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// As in the name of a container.
pub(super) fn label(text: &str) -> Broken {
    let mut broken = longer_than(text, 63, "characters");
    if !is_label(text) {
        broken.push(if is_subdomain(text) { "must not contain dots".into() } else { LABEL.into() });
    }
    broken
}

/// As in the name of a pod.
pub(super) fn subdomain(text: &str) -> Broken {
    let mut broken = longer_than(text, 253, "characters");
    if !is_subdomain(text) {
        broken.push(SUBDOMAIN.into());
    }
    broken
}

/// As in a DNS search path.
pub(super) fn subdomain_with_underscore(text: &str) -> Broken {
    let part = |part: &str| is_word(part.strip_prefix('_').unwrap_or(part), is_lower, b"-_");
    let mut broken = longer_than(text, 253, "characters");
    if !text.split('.').all(part) {
        broken.push(SUBDOMAIN_UNDERSCORE.into());
    }
    broken
}

/// As in the key of a label: a name with an optional domain before a slash.
pub(super) fn qualified(text: &str) -> Broken {
    let mut broken = Broken::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                broken.push("prefix part must be non-empty".into());
            } else {
                broken.extend(subdomain(prefix).into_iter().map(|rule| format!("prefix part {rule}")));
            }
            name
        }
        _ => {
            let with_prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {NAME_PART} {with_prefix}")];
        }
    };
    if name.is_empty() {
        broken.push("name part must be non-empty".into());
    } else {
        broken.extend(longer_than(name, 63, "bytes").into_iter().map(|rule| format!("name part {rule}")));
    }
    if !is_word(name, |byte| byte.is_ascii_alphanumeric(), b"-_.") {
        broken.push(format!("name part {NAME_PART}"));
    }
    broken
}

/// The value of a label.
pub(super) fn label_value(text: &str) -> Broken {
    let mut broken = longer_than(text, 63, "bytes");
    if !text.is_empty() && !is_word(text, |byte| byte.is_ascii_alphanumeric(), b"-_.") {
        broken.push(LABEL_VALUE.into());
    }
    broken
}

/// The name of an environment variable.
pub(super) fn variable(text: &str) -> Broken {
    let fits = |c: char| matches!(c, ' '..='~') && c != '=';
    if text.is_empty() {
        vec!["environment variable name must be non-empty".into()]
    } else if text.chars().all(fits) {
        Broken::new()
    } else {
        vec![VARIABLE.into()]
    }
}

/// A key of a ConfigMap or Secret.
pub(super) fn config_key(text: &str) -> Broken {
    let mut broken = longer_than(text, 253, "characters");
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if text.is_empty() || !text.bytes().all(fits) {
        broken.push(CONFIG_KEY.into());
    }
    match text {
        "." => broken.push("must not be '.'".into()),
        ".." => broken.push("must not be '..'".into()),
        text if text.starts_with("..") => broken.push("must not start with '..'".into()),
        _ => {}
    }
    broken
}

/// The name of an HTTP header.
pub(super) fn header(text: &str) -> Broken {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !text.is_empty() && text.bytes().all(fits) { Broken::new() } else { vec![HEADER.into()] }
}

/// The name of a port.
pub(super) fn port(text: &str) -> Broken {
    let mut broken = longer_than(text, 15, "characters");
    let rules = [
        (
            !text.is_empty() && text.bytes().all(|byte| is_lower(byte) || byte == b'-'),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (text.bytes().any(|byte| byte.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (!text.contains("--"), "must not contain consecutive hyphens"),
        (!text.starts_with('-') && !text.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    broken.extend(rules.into_iter().filter(|(holds, _)| !holds).map(|(_, rule)| rule.into()));
    broken
}

/// The name of a kernel parameter, with dots or slashes.
pub(super) fn is_sysctl(text: &str) -> bool {
    text.len() <= 253 && text.split(['.', '/']).all(|part| is_word(part, is_lower, b"-_"))
}

/// A name that something will be added to: a dash may end it.
pub(super) fn subdomain_prefix(text: &str) -> Broken {
    // What is before the dash is not looked at, here as upstream.
    match text.strip_suffix('-').and_then(|start| start.char_indices().next_back()) {
        Some((last, _)) => subdomain(&format!("{}a", &text[..last])),
        None => subdomain(text),
    }
}

/// An IP address, as old fields take it.
pub(super) fn ip(text: &str) -> Broken {
    let rule = match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => "must not be an IPv4-mapped IPv6 address",
        Ok(_) => return Broken::new(),
        // 010.0.0.1 was taken once, and meant different things to different programs.
        Err(_) if without_leading_zeros(text).parse::<IpAddr>().is_ok() => "must not have leading 0s",
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    vec![rule.into()]
}

fn without_leading_zeros(address: &str) -> String {
    let trim = |number: &str| match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    let quad = |part: &str| part.split('.').map(trim).collect::<Vec<_>>().join(".");
    address.split(':').map(quad).collect::<Vec<_>>().join(":")
}

fn longer_than(text: &str, most: usize, unit: &str) -> Broken {
    if text.len() > most { vec![format!("must be no more than {most} {unit}")] } else { Broken::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_take_what_they_should() {
        type Form = fn(&str) -> Broken;
        let table: [(Form, &str, usize); 30] = [
            (label, "a-b", 0),
            (label, "a.b", 1),
            (label, "-", 1),
            (label, "", 1),
            (subdomain, "a.b-c.0", 0),
            (subdomain, "a..b", 1),
            (subdomain, "A", 1),
            (subdomain_with_underscore, "_tcp.a_b", 0),
            (subdomain_with_underscore, "a_", 1),
            (qualified, "example.com/a_B.c", 0),
            (qualified, "/a", 1),
            (qualified, "", 2),
            (qualified, "a/b/c", 1),
            (label_value, "", 0),
            (label_value, "a b", 1),
            (variable, "a b", 0),
            (variable, "a=b", 1),
            (config_key, "..a", 1),
            (port, "http", 0),
            (port, "1--2", 2),
            (ip, "010.0.0.1", 1),
            (ip, "2001:db8::1", 0),
            (ip, "::ffff:1.2.3.4", 1),
            (ip, "::ffff:01.2.3.4", 1),
            (ip, "fe80::1%eth0", 1),
            (subdomain_prefix, "a-", 0),
            (subdomain_prefix, "A-", 0),
            (subdomain_prefix, "-", 1),
            (subdomain_prefix, "aB-", 0),
            (subdomain_prefix, "Ab-", 1),
        ];
        for (form, text, broken) in table {
            assert_eq!(form(text).len(), broken, "{text:?}: {:?}", form(text));
        }
    }
}
