//! What the server is told on its command line and by its environment.

use std::path::PathBuf;

/// Where nginx' images and this one keep their files.
const USUAL_ROOTS: [&str; 2] = ["/usr/share/nginx/html", "/www"];

const USAGE: &str = "usage: web [--root DIR] [--port PORT]";

/// The options.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) port: u16,
    root: Option<PathBuf>,
}

impl Options {
    /// From arguments and environment. What nginx' image is called with (`-g 'daemon off;'`) is taken and means nothing.
    pub(crate) fn parse(
        args: impl IntoIterator<Item = String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Options, String> {
        let mut port = variable("PORT").filter(|port| !port.is_empty()).unwrap_or_else(|| "80".to_owned());
        let mut root = None;
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let (name, attached) = match arg.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
                _ => (arg, None),
            };
            let mut value = || attached.clone().or_else(|| args.next()).ok_or(format!("{name} needs a value; {USAGE}"));
            match name.as_str() {
                "--port" | "-p" => port = value()?,
                "--root" | "-r" => root = Some(PathBuf::from(value()?)),
                "-g" | "-c" => drop(value()?),
                _ => return Err(format!("{name}: unknown argument; {USAGE}")),
            }
        }
        let port = port.parse().ok().filter(|port| *port > 0).ok_or(format!("'{port}' is no port: 1 to 65535"))?;
        if let Some(root) = root.as_ref().filter(|root| !root.is_dir()) {
            return Err(format!("--root {}: no such directory; mount a volume there", root.display()));
        }
        Ok(Options { port, root })
    }

    /// The directory to serve, if there is one.
    pub(crate) fn root(&self) -> Option<PathBuf> {
        let usual = || USUAL_ROOTS.into_iter().map(PathBuf::from).find(|root| root.is_dir());
        self.root.clone().or_else(usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str], port: Option<&str>) -> Result<Options, String> {
        let port = port.map(str::to_owned);
        Options::parse(args.iter().map(|arg| (*arg).to_owned()), |name| port.clone().filter(|_| name == "PORT"))
    }

    #[test]
    fn arguments_win_over_the_environment_and_that_over_the_default() {
        assert_eq!(parse(&[], None).unwrap().port, 80);
        assert_eq!(parse(&[], Some("8080")).unwrap().port, 8080);
        assert_eq!(parse(&["--port", "81"], Some("8080")).unwrap().port, 81);
        assert_eq!(parse(&["--port=82", "-g", "daemon off;"], None).unwrap().port, 82);
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (args, part) in [
            (&["--port", "x"][..], "'x' is no port"),
            (&["--port", "0"], "'0' is no port"),
            (&["--port"], "--port needs a value"),
            (&["--root", "/no/such/dir"], "/no/such/dir"),
            (&["sh"], "sh: unknown argument"),
        ] {
            let message = parse(args, None).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
