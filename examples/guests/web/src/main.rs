//! A web server for static files: what Linux images have nginx for.
//!
//! It serves the files of `--root`, else of the first of nginx' usual places that is there, else one page of its own.
//! `/healthz` says that it is alive. When it is stopped it takes no new connections, ends what it has begun, and exits
//! with 0.

mod files;
mod hooks;
mod options;

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use guest_support::http::{Request, Response};
use guest_support::server::{Context, serve};
use husk_guest::{error, health, info};

use options::Options;

/// Less than a pod's usual grace period of 30 s, so that the last answers are out before KILL comes.
const DRAIN: Duration = Duration::from_secs(25);

fn main() {
    husk_guest::exit(run())
}

/// The answer is the exit code.
fn run() -> u8 {
    let mut args = std::env::args();
    let called_as = args.next().unwrap_or_default();
    let args: Vec<String> = args.collect();
    if let Some(code) = hooks::run(&called_as, &args) {
        return code;
    }
    let options = match Options::parse(args, |name| std::env::var(name).ok()) {
        Ok(options) => options,
        Err(message) => {
            error!("{message}");
            return 2;
        }
    };
    let listener = match TcpListener::bind((Ipv4Addr::UNSPECIFIED, options.port)) {
        Ok(listener) => listener,
        Err(error) => {
            error!("port {}: {error}; choose another with --port or PORT", options.port);
            return 1;
        }
    };
    let root = options.root();
    match &root {
        Some(root) => info!("serving {} on port {}", root.display(), options.port),
        None => info!("serving the built-in page on port {}", options.port),
    }
    health::ready(true);
    let served = serve(listener, DRAIN, |request, context| {
        let response = match request.path.as_str() {
            "/healthz" if context.is_draining => Response::text(503, "stopping\n"),
            "/healthz" => Response::text(200, "ok\n"),
            _ => files::respond(root.as_deref(), request),
        };
        log(request, &response, context);
        response
    });
    match served {
        Ok(signal) => {
            info!("{signal}: drained");
            0
        }
        Err(error) => {
            error!("the listener failed: {error}");
            1
        }
    }
}

/// The access log, on the output; the node adds the time.
fn log(request: &Request, response: &Response, context: &Context) {
    let Request { method, path, version, .. } = request;
    let agent = request.header("user-agent").unwrap_or("-");
    let (status, size) = (response.status, response.body.len());
    println!("{} \"{method} {path} {version}\" {status} {size} \"{agent}\"", context.peer);
}
