//! Names of images, by the rules of container registries: `web` is `docker.io/library/web:latest`.

use std::fmt;
use std::str::FromStr;

use super::digest::Digest;

const DEFAULT_DOMAIN: &str = "docker.io";
const DEFAULT_FOLDER: &str = "library";
const DEFAULT_TAG: &str = "latest";

/// Characters of a repository's name, at most.
const MAX_NAME: usize = 255;
/// Characters of a tag, at most.
const MAX_TAG: usize = 128;

/// The full name of an image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// No image can have that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("couldn't parse image name \"{name}\": {detail}")]
pub struct InvalidName {
    name: String,
    detail: String,
}

impl Reference {
    /// `docker.io/library/web`.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// What it says of its content.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Whether it names more than content.
    pub(crate) fn has_tag(&self) -> bool {
        self.tag.is_some()
    }

    /// The same without a digest; `latest` if it has no tag either.
    pub fn tagged(&self) -> String {
        format!("{}:{}", self.repository, self.tag.as_deref().unwrap_or(DEFAULT_TAG))
    }

    /// The same repository with that content.
    pub(crate) fn of_content(&self, digest: Digest) -> Self {
        Self { digest: Some(digest), ..self.clone() }
    }

    /// What status shows as `imageID`: the repository with the digest of the image.
    pub fn image_id(&self, digest: Digest) -> String {
        format!("{}@{digest}", self.repository)
    }
}

impl FromStr for Reference {
    type Err = InvalidName;

    fn from_str(name: &str) -> Result<Self, InvalidName> {
        let invalid = |detail: &str| InvalidName { name: name.to_owned(), detail: detail.to_owned() };
        const FORMAT: &str = "invalid reference format";
        let (rest, digest) = match name.split_once('@') {
            Some((rest, digest)) => {
                (rest, Some(digest.parse::<Digest>().map_err(|error| invalid(&error.to_string()))?))
            }
            None => (name, None),
        };
        let (path, tag) = match rest.rsplit_once(':') {
            // A colon before a slash belongs to the port.
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
            _ => (rest, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(invalid(FORMAT));
        }
        if digest.is_none() && tag.is_none() && is_identifier(path) {
            return Err(invalid("cannot specify 64-byte hexadecimal strings"));
        }
        let (domain, path) = split_domain(path);
        if path.chars().any(|c| c.is_ascii_uppercase()) {
            return Err(invalid("invalid reference format: repository name must be lowercase"));
        }
        if !is_domain(domain) || !path.split('/').all(is_component) {
            return Err(invalid(FORMAT));
        }
        let library = domain == DEFAULT_DOMAIN && !path.contains('/');
        let repository = match library {
            true => format!("{domain}/{DEFAULT_FOLDER}/{path}"),
            false => format!("{domain}/{path}"),
        };
        if repository.len() > MAX_NAME {
            return Err(invalid("repository name must not be more than 255 characters"));
        }
        let tag = tag.or(digest.is_none().then_some(DEFAULT_TAG)).map(String::from);
        Ok(Self { repository, tag, digest })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

/// Whether the text is 64 hexadecimal digits, which would be an image's id.
fn is_identifier(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Domain and path. What comes first is a domain if it can't be part of a path.
fn split_domain(name: &str) -> (&str, &str) {
    match name.split_once('/') {
        Some(("index.docker.io", path)) => (DEFAULT_DOMAIN, path),
        Some((domain, path)) if is_certainly_domain(domain) => (domain, path),
        _ => (DEFAULT_DOMAIN, name),
    }
}

fn is_certainly_domain(text: &str) -> bool {
    text == "localhost" || text.contains(['.', ':']) || text.chars().any(|c| c.is_ascii_uppercase())
}

/// `registry.example.com:5000`, or an IPv6 address in brackets.
fn is_domain(text: &str) -> bool {
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((address, port)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let inside = !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':');
        return inside && (port.is_empty() || port.strip_prefix(':').is_some_and(digits));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let label = |label: &str| {
        let ends = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        ends(label.bytes().next())
            && ends(label.bytes().last())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    host.split('.').all(label) && port.is_none_or(digits)
}

/// Lower case letters and digits, with `.`, `_`, `__` or any number of `-` between them.
fn is_component(text: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let separator = |text: &str| matches!(text, "." | "_" | "__") || text.bytes().all(|byte| byte == b'-');
    let ends = |c: Option<char>| c.is_some_and(alphanumeric);
    ends(text.chars().next())
        && ends(text.chars().last())
        && text.split(alphanumeric).filter(|between| !between.is_empty()).all(separator)
}

fn is_tag(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= MAX_TAG && text.starts_with(word) && text.chars().all(|c| word(c) || matches!(c, '.' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn names_are_completed() {
        for (name, full) in [
            ("web", "docker.io/library/web:latest"),
            ("web:1.0", "docker.io/library/web:1.0"),
            ("team/web", "docker.io/team/web:latest"),
            ("docker.io/web", "docker.io/library/web:latest"),
            ("index.docker.io/web:2", "docker.io/library/web:2"),
            ("localhost/web", "localhost/web:latest"),
            ("localhost:5000/a/b__c/d--e.f:v1", "localhost:5000/a/b__c/d--e.f:v1"),
            ("[::1]:5000/web", "[::1]:5000/web:latest"),
            ("Registry/web", "Registry/web:latest"),
            ("registry.example.com/web", "registry.example.com/web:latest"),
            (&format!("web@sha256:{HEX}"), &format!("docker.io/library/web@sha256:{HEX}")),
            (&format!("web:1@sha256:{HEX}"), &format!("docker.io/library/web:1@sha256:{HEX}")),
            (&format!("{HEX}:1"), &format!("docker.io/library/{HEX}:1")),
        ] {
            let parsed = name.parse::<Reference>().map(|reference| reference.to_string());
            assert_eq!(parsed.as_deref(), Ok(full), "{name}");
        }
    }

    #[test]
    fn what_is_no_name_is_said_so() {
        let long = "a".repeat(256);
        let long_tag = format!("web:{}", "a".repeat(129));
        for name in [
            "",
            ":",
            "@",
            "web:",
            "web@",
            "a b",
            "web:a b",
            "-web",
            "web-",
            "a___b",
            "a..b",
            "a//b",
            "/a",
            "a/",
            "web:.1",
            "../web",
            "a.b:c/web",
            "web@sha256:12",
            "web@sha512:12",
            "wéb",
            "a\nb",
            &long,
            &long_tag,
            HEX,
        ] {
            assert!(name.parse::<Reference>().is_err(), "{name:?}");
        }
        let said = "Team/Web".parse::<Reference>().map(|_| ()).map_err(|error| error.to_string());
        let words =
            "couldn't parse image name \"Team/Web\": invalid reference format: repository name must be lowercase";
        assert_eq!(said, Err(words.to_owned()));
    }

    #[test]
    fn the_image_id_has_the_repository() {
        let reference: Reference = "web:1".parse().expect("a name");
        let digest: Digest = format!("sha256:{HEX}").parse().expect("a digest");
        assert_eq!(reference.image_id(digest), format!("docker.io/library/web@sha256:{HEX}"));
    }
}
