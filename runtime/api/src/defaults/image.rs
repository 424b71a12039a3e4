//! Which image names mean "the newest": those without a tag, and the tag `latest`.

/// Whether the image is `NAME:latest`, written out or not. A name that is no image reference is none.
pub(crate) fn has_latest_tag(image: &str) -> bool {
    let (name, has_digest) = match image.split_once('@') {
        Some((name, digest)) if is_digest(digest) => (name, true),
        Some(_) => return false,
        None => (image, false),
    };
    // A colon before the last slash belongs to the registry's port.
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match name[last..].find(':') {
        Some(colon) => (&name[..last + colon], Some(&name[last + colon + 1..])),
        None => (name, None),
    };
    let newest = match tag {
        Some(tag) => is_tag(tag) && tag == "latest",
        None => !has_digest,
    };
    newest && is_name(name)
}

fn is_digest(text: &str) -> bool {
    let hex = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
    match text.split_once(':') {
        Some(("sha256", digest)) => digest.len() == 64 && hex(digest),
        Some(("sha384", digest)) => digest.len() == 96 && hex(digest),
        Some(("sha512", digest)) => digest.len() == 128 && hex(digest),
        _ => false,
    }
}

fn is_tag(text: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    text.len() <= 128 && text.bytes().enumerate().all(|(at, b)| word(b) || (at > 0 && matches!(b, b'.' | b'-')))
}

/// `[registry[:port]/]path/…/name`, all of it but the registry in lower case.
fn is_name(text: &str) -> bool {
    let is_id = text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
    let path = match text.split_once('/') {
        Some((registry, path)) if is_registry(registry) => path,
        _ => text,
    };
    !is_id && path.len() <= 255 && path.split('/').all(is_component)
}

/// Only a name with a dot, a port or capitals, or `localhost`, is a registry; the others are the first part of a path.
fn is_registry(text: &str) -> bool {
    let looks_like_one = text.contains(['.', ':']) || text == "localhost" || text.to_lowercase() != text;
    let (host, port) = text.rsplit_once(':').unwrap_or((text, "0"));
    let label = |label: &str| {
        let inside = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        !label.is_empty() && inside && !label.starts_with('-') && !label.ends_with('-')
    };
    looks_like_one && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) && host.split('.').all(label)
}

/// Lower-case words with `.`, `_`, `__` or dashes between them.
fn is_component(text: &str) -> bool {
    let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    let separators_fit = text
        .split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        .all(|between| matches!(between, "" | "." | "_" | "__") || between.bytes().all(|b| b == b'-'));
    word(*first) && word(*last) && separators_fit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_no_tag_or_latest() {
        let digest = format!("i@sha256:{}", "a".repeat(64));
        let table = [
            ("i", true),
            ("i:latest", true),
            ("i:1", false),
            ("r.io/i", true),
            ("r.io:5000/i", true),
            ("r.io:5000/i:2", false),
            ("a/b/c:latest", true),
            ("a__b/c-d.e", true),
            (digest.as_str(), false),
            ("", false),
            ("Upper", false),
            ("a//b", false),
            ("a..b", false),
            ("i:latest:latest", false),
        ];
        for (image, newest) in table {
            assert_eq!(has_latest_tag(image), newest, "{image}");
        }
    }
}
