//! Tries what a guest should not get by its sockets, for the tests of hostile guests. It exits with the error that it got.

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

/// No machine gives so many to one guest.
const TOO_MANY: usize = 100_000;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let code = match attempt(&words) {
        Ok(()) => 0,
        Err(error) => {
            println!("{error}");
            error.raw_os_error().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
        }
    };
    husk_guest::exit(code)
}

fn attempt(words: &[&str]) -> io::Result<()> {
    match words {
        ["connect", address] => TcpStream::connect(address).map(drop),
        ["send", address] => {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            socket.send_to(b"hello", address).map(drop)
        }
        ["bind", address] => TcpListener::bind(address).map(drop),
        ["lookup", name] => name.to_socket_addrs().map(drop),
        ["hoard-listeners"] => {
            let hoard: io::Result<Vec<_>> = (0..TOO_MANY).map(|_| TcpListener::bind("0.0.0.0:0")).collect();
            hoard.map(drop)
        }
        ["hoard-calls"] => hoard_calls(),
        ["deaf"] => deaf(),
        ["flood"] => flood(),
        ["churn"] => churn(),
        ["names"] => {
            println!("asking");
            loop {
                let _ = "example.com:80".to_socket_addrs();
            }
        }
        _ => Err(io::Error::other("it knows no such attack")),
    }
}

/// Calls somebody who takes no calls, as often as it can.
fn hoard_calls() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:0")?;
    println!("calling");
    let hoard: io::Result<Vec<_>> = (0..TOO_MANY).map(|_| TcpStream::connect(listener.local_addr()?)).collect();
    hoard.map(drop)
}

/// Writes to somebody who never reads, until nothing more goes in.
fn deaf() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:0")?;
    let mut pairs = Vec::new();
    for _ in 0..20 {
        let mut caller = TcpStream::connect(listener.local_addr()?)?;
        caller.set_nonblocking(true)?;
        let (callee, _) = listener.accept()?;
        while caller.write(&[7; 65536]).is_ok() {}
        pairs.push((caller, callee));
    }
    println!("full");
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Sends datagrams to itself, which it never takes.
fn flood() -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let address = socket.local_addr()?;
    println!("flooding");
    loop {
        let _ = socket.send_to(&[7; 1400], address);
    }
}

/// Opens and closes connections to itself.
fn churn() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:0")?;
    println!("churning");
    loop {
        let caller = TcpStream::connect(listener.local_addr()?)?;
        let (callee, _) = listener.accept()?;
        drop((caller, callee));
    }
}
