//! URLs of probes and hooks: built from an action's fields, and from where a redirect leads.

use hyper::Uri;

/// `SCHEME://AUTHORITY/PATH`. A path may have a query, and characters that have to be escaped; a fragment isn't sent.
pub(super) fn parse(scheme: &str, authority: &str, path: &str) -> Option<Uri> {
    let path = path.split('#').next().unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    format!("{scheme}://{authority}{slash}{}", escape(path)).parse().ok()
}

/// Where a Location leads from a URL, and whether it names a host; none if it is no URL that can be asked for.
pub(super) fn join(from: &Uri, location: &str) -> Option<(Uri, bool)> {
    let (scheme, authority) = (from.scheme_str()?, from.authority()?.as_str());
    let lower = location.to_ascii_lowercase();
    for known in ["http", "https"] {
        if lower.starts_with(&format!("{known}://")) {
            return Some((absolute(known, &location[known.len() + 3..])?, true));
        }
    }
    if let Some(rest) = location.strip_prefix("//") {
        return Some((absolute(scheme, rest)?, true));
    }
    let (before, query) = location.split_once('?').map_or((location, None), |(path, query)| (path, Some(query)));
    if before.contains(':') && !before.split(':').next().unwrap_or_default().contains('/') {
        // Another scheme.
        return None;
    }
    let path = match before {
        "" => from.path().to_owned(),
        path if path.starts_with('/') => plain(path),
        path => plain(&format!("{}/{path}", from.path().rsplit_once('/').map_or("", |(folder, _)| folder))),
    };
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Some((parse(scheme, authority, &format!("{path}{query}"))?, false))
}

fn absolute(scheme: &str, rest: &str) -> Option<Uri> {
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // Who it is for is what counts; a user's name would be a header of its own.
    let authority = authority.rsplit('@').next().unwrap_or(authority);
    parse(scheme, authority, path)
}

/// Without `.` and `..`.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let all: Vec<&str> = path.split('/').skip(1).collect();
    for (n, part) in all.iter().enumerate() {
        let is_last = n + 1 == all.len();
        match *part {
            "." if is_last => parts.push(""),
            "." => {}
            ".." => {
                parts.pop();
                if is_last {
                    parts.push("");
                }
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Escapes what can't stand in a URL. What is escaped already stays as it is.
fn escape(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            0..=b' ' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 127.. => {
                escaped.push_str(&format!("%{byte:02X}"));
            }
            _ => escaped.push(char::from(byte)),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_made_into_a_url() {
        for (path, url) in [
            ("", "http://127.0.0.1:80/"),
            ("healthz", "http://127.0.0.1:80/healthz"),
            ("/a b?c=%20d&e=\"f\"#g", "http://127.0.0.1:80/a%20b?c=%20d&e=%22f%22"),
            ("/grüße", "http://127.0.0.1:80/gr%C3%BC%C3%9Fe"),
            ("?full", "http://127.0.0.1:80/?full"),
        ] {
            assert_eq!(parse("http", "127.0.0.1:80", path).map(|url| url.to_string()).as_deref(), Some(url), "{path}");
        }
    }

    #[test]
    fn a_location_is_seen_from_where_it_was_found() {
        let from: Uri = "http://10.0.0.1:8080/a/b?c".parse().expect("a URL");
        for (location, url, is_absolute) in [
            ("/x?y", "http://10.0.0.1:8080/x?y", false),
            ("x", "http://10.0.0.1:8080/a/x", false),
            ("../x/./y/..", "http://10.0.0.1:8080/x/", false),
            ("../../../x", "http://10.0.0.1:8080/x", false),
            ("?d", "http://10.0.0.1:8080/a/b?d", false),
            ("x?to=http://elsewhere", "http://10.0.0.1:8080/a/x?to=http://elsewhere", false),
            ("HTTPS://10.0.0.1", "https://10.0.0.1/", true),
            ("//me@10.0.0.2:1/x", "http://10.0.0.2:1/x", true),
        ] {
            let found = join(&from, location).map(|(url, is_absolute)| (url.to_string(), is_absolute));
            assert_eq!(found, Some((url.to_owned(), is_absolute)), "{location}");
        }
        for location in ["ftp://10.0.0.1/", "mailto:me", "http://"] {
            assert_eq!(join(&from, location), None, "{location}");
        }
    }
}
