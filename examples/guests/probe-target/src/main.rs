//! An HTTP server whose health follows a script, to try probes on.
//!
//! `/startup` is healthy once the start is over, `/healthz` and `/readyz` follow their schedules, `/status` says all
//! three and is always answered. `probe-target check healthz` asks the server of the same pod: the form for exec probes.

mod check;
mod schedule;

use std::net::{Ipv4Addr, TcpListener};
use std::time::Instant;

use guest_support::http::Response;
use guest_support::server::serve;
use husk_guest::{Signal, error, health, info, signals};

use schedule::Script;

fn main() {
    husk_guest::exit(run())
}

/// The answer is the exit code.
fn run() -> u8 {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "check") {
        return check::run(&args[1..]);
    }
    if args.iter().any(|arg| arg == "--help") {
        println!("{}", schedule::USAGE);
        return 0;
    }
    let script = match Script::parse(&args) {
        Ok(script) => script,
        Err(message) => {
            error!("{message}\n{}", schedule::USAGE);
            return 2;
        }
    };
    let listener = match TcpListener::bind((Ipv4Addr::UNSPECIFIED, script.port)) {
        Ok(listener) => listener,
        Err(error) => {
            error!("port {}: {error}; choose another with --port or PORT", script.port);
            return 1;
        }
    };
    info!("listening on port {}", script.port);
    let begun = Instant::now();
    health::ready(true);
    let served = serve(listener, script.stop_takes, |request, _| {
        let age = begun.elapsed();
        let mut response = match request.path.as_str() {
            "/status" => Response::text(200, script.describe(age)),
            path => match script.is_healthy(path.trim_start_matches('/'), age) {
                Some(true) => Response::text(200, "ok\n"),
                Some(false) => Response::text(503, "not now\n"),
                None => Response::status(404),
            },
        };
        response.delay = script.delay;
        info!("{:.1} s: {} is {}", age.as_secs_f64(), request.path, response.status);
        response
    });
    match served {
        Ok(signal) => stop(&script, signal),
        Err(error) => {
            error!("the listener failed: {error}");
            1
        }
    }
}

/// Takes as long to stop as the script says.
fn stop(script: &Script, signal: Signal) -> u8 {
    if script.ignores_stop {
        info!("{signal} is ignored");
        loop {
            signals::wait(None);
        }
    }
    info!("{signal}: stopping takes {:?}", script.stop_takes);
    let end = Instant::now() + script.stop_takes;
    while Instant::now() < end {
        // More signals change nothing; KILL isn't among them.
        signals::wait(Some(end.saturating_duration_since(Instant::now())));
    }
    script.exit_code
}
