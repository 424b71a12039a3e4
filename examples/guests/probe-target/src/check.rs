//! `probe-target check`: what an exec probe runs.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use crate::schedule::port;

/// Asks the server of this pod. Exit code 0: healthy; 1: not, or no answer; 2: wrong arguments.
pub(crate) fn run(args: &[String]) -> u8 {
    match ask(args) {
        Ok((text, is_healthy)) => {
            println!("{text}");
            u8::from(!is_healthy)
        }
        Err(message) => {
            eprintln!("check: {message}");
            2
        }
    }
}

fn ask(args: &[String]) -> Result<(String, bool), String> {
    let mut aspect = "healthz";
    let mut number = std::env::var("PORT").unwrap_or_else(|_| "8080".to_owned());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "startup" | "healthz" | "readyz" => aspect = arg,
            "--port" => number = args.next().ok_or("--port needs a value")?.clone(),
            other => match other.strip_prefix("--port=") {
                Some(value) => number = value.to_owned(),
                None => return Err(format!("{other}: unknown argument; know startup, healthz, readyz, --port")),
            },
        }
    }
    let port = port(&number)?;
    let answer = fetch(port, aspect).unwrap_or_else(|error| format!("no answer from port {port}: {error}"));
    let line = answer.lines().next().unwrap_or("no answer").to_owned();
    let is_healthy = line.split(' ').nth(1) == Some("200") && line.starts_with("HTTP/");
    Ok((line, is_healthy))
}

fn fetch(port: u16, aspect: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    write!(stream, "GET /{aspect} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
