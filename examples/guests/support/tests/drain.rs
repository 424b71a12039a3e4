//! The server on real sockets, from its first request to the end of its drain.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use guest_support::http::Response;
use guest_support::server::serve;
use husk_guest::Signal;
use husk_guest::signals::native::raise;

fn connect(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

fn rest(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

// One test: a stop signal is for the whole process.
#[test]
fn requests_are_answered_and_a_stop_drains() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        serve(listener, Duration::from_secs(60), |request, context| {
            if request.path == "/stop" {
                raise(Signal::Term, Duration::ZERO);
            }
            let mut response = Response::text(200, format!("{} {}", request.path, context.is_draining));
            if request.path == "/slow" {
                response.delay = Duration::from_millis(50);
            }
            response
        })
    });

    let answer = rest(connect(address, "GET /one HTTP/1.1\r\nConnection: close\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n/one false"), "{answer}");
    let answer = rest(connect(address, "HEAD /one HTTP/1.0\r\n\r\n"));
    assert!(answer.contains("Content-Length: 10\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
    let answer = rest(connect(address, "POST / HTTP/1.0\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    let answer = rest(connect(address, "nonsense\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    // Two requests in one go, on one connection.
    let answer = rest(connect(address, "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\nConnection: close\r\n\r\n"));
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2, "{answer}");

    let idle = connect(address, "");
    let slow = connect(address, "GET /slow HTTP/1.1\r\n\r\n");
    let mut unfinished = connect(address, "GET /unfinished HT");
    // The answers to these show that the server has seen what came before.
    rest(connect(address, "GET /stop HTTP/1.1\r\nConnection: close\r\n\r\n"));
    assert_eq!(rest(idle), "", "an idle connection is closed");
    unfinished.write_all(b"TP/1.1\r\n\r\n").unwrap();
    let answer = rest(unfinished);
    assert!(answer.ends_with("/unfinished true") && answer.contains("Connection: close"), "{answer}");
    assert!(rest(slow).ends_with("/slow false"));
    assert_eq!(server.join().unwrap().unwrap(), Signal::Term);
    assert!(TcpStream::connect(address).is_err(), "the listener is closed");
}
