//! From the path of a request to a file.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use guest_support::http::{Request, Response};

const BUILT_IN_PAGE: &str = "\
<!DOCTYPE html>
<html lang=\"en\">
<title>Husk</title>
<h1>It works</h1>
<p>This page comes from a WebAssembly module in a Husk pod. Mount a volume at /usr/share/nginx/html or /www to serve your own.</p>
</html>
";

const HTML: &str = "text/html; charset=utf-8";

/// The answer for a path.
pub(crate) fn respond(root: Option<&Path>, request: &Request) -> Response {
    let Some(root) = root else {
        return match request.path.as_str() {
            "/" | "/index.html" => Response::new(200, HTML, BUILT_IN_PAGE),
            _ => Response::status(404),
        };
    };
    let Some(relative) = request.decoded_path().as_deref().and_then(inside) else { return Response::status(400) };
    let mut file = root.join(relative);
    if file.is_dir() {
        if !request.path.ends_with('/') {
            let mut response = Response::status(301);
            response.headers.push(("Location", format!("{}/", request.path)));
            return response;
        }
        file.push("index.html");
    }
    match fs::read(&file) {
        Ok(body) => Response::new(200, content_type(&file), body),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Response::status(403),
        Err(_) => Response::status(404),
    }
}

/// The path below the root. None if it would leave it.
fn inside(path: &str) -> Option<PathBuf> {
    let mut relative = PathBuf::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part if part.contains(['\\', '\0']) => return None,
            part => relative.push(part),
        }
    }
    Some(relative)
}

fn content_type(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html" | "htm") => HTML,
        Some("css") => "text/css; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("txt" | "md" | "log") => "text/plain; charset=utf-8",
        Some("xml") => "text/xml; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("ico") => "image/x-icon",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(root: Option<&Path>, path: &str) -> (u16, String) {
        let request = Request { method: "GET".to_owned(), path: path.to_owned(), ..Request::default() };
        let response = respond(root, &request);
        (response.status, String::from_utf8_lossy(&response.body).into_owned())
    }

    #[test]
    fn files_are_found_below_the_root_only() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("index.html"), "front").unwrap();
        fs::write(root.join("sub/index.html"), "sub").unwrap();
        fs::write(root.join("a b.txt"), "space").unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        let root = Some(root.as_path());
        assert_eq!(get(root, "/"), (200, "front".to_owned()));
        assert_eq!(get(root, "/sub/"), (200, "sub".to_owned()));
        assert_eq!(get(root, "/sub").0, 301);
        assert_eq!(get(root, "/a%20b.txt"), (200, "space".to_owned()));
        assert_eq!(get(root, "/none").0, 404);
        for path in ["/../secret", "/%2e%2e/secret", "/sub/../../secret", "/%00", "/%"] {
            assert_eq!(get(root, path).0, 400, "{path}");
        }
    }

    #[test]
    fn without_files_there_is_one_page() {
        assert!(get(None, "/").1.contains("It works"));
        assert_eq!(get(None, "/other").0, 404);
    }
}
