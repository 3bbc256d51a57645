//! Serves pages to browsers on this machine.
//!
//! The server listens on the loopback interface alone. Other sites that a browser shows could still send it
//! requests, directly or through a name that they let point to this machine (DNS rebinding). So a request must
//! name this server in `Host`, and no request changes anything: only GET and HEAD are answered.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a client may take for its request, and then for the answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long the server waits if the process has too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest head of a request.
const HEAD_MAX: usize = 16 << 10;

/// The most connections at a time; browsers open some in advance.
const CONNECTIONS_MAX: usize = 64;

/// The headers of every answer. The page has a policy of its own contents.
const HEADERS: &str = "Cache-Control: no-store\r\n\
    Content-Security-Policy: frame-ancestors 'none'\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Referrer-Policy: no-referrer\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Connection: close\r\n";

/// A server of one page.
#[derive(Debug)]
pub(crate) struct PageServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl PageServer {
    /// Listens on a port of the loopback interface; 0 is any free one.
    pub(crate) fn listen(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves an HTML page to every client until the process ends.
    ///
    /// # Errors
    /// The listener failed. A connection that fails only ends itself.
    pub(crate) fn serve(&self, page: &'static [u8]) -> io::Result<()> {
        let open = Arc::new(AtomicUsize::new(0));
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if is_of_listener(error.kind()) => return Err(error),
                // The client has gone, or the process has too many open files.
                Err(_) => {
                    thread::sleep(PAUSE);
                    continue;
                }
            };
            if open.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
                continue;
            }
            open.fetch_add(1, Ordering::Relaxed);
            let (counted, port) = (Arc::clone(&open), self.address.port());
            let answer = move || {
                // The client has gone, or was too slow.
                let _ = answer_on(stream, port, page);
                counted.fetch_sub(1, Ordering::Relaxed);
            };
            let started = thread::Builder::new().name("terrane-page".to_owned()).spawn(answer);
            if started.is_err() {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

/// Reads a request, and answers it.
fn answer_on(mut stream: TcpStream, port: u16, page: &[u8]) -> io::Result<()> {
    let until = Instant::now() + TIMEOUT;
    let head = read_head(&mut stream, |stream| {
        let left = until.saturating_duration_since(Instant::now());
        let is_over = left.is_zero();
        if is_over {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            stream.set_read_timeout(Some(left))
        }
    })?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let Answer { status, body, with_body } = answer(&head, port, page);
    let kind = if status == OK { "text/html" } else { "text/plain" };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\n{HEADERS}\r\n",
        body.len()
    )?;
    if with_body {
        stream.write_all(body)?;
    }
    stream.flush()
}

/// Returns true for errors after which a listener cannot go on.
fn is_of_listener(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::NotConnected)
}

/// Returns the bytes up to the end of the headers, or the first ones if there are too many. Calls `before` before
/// each read.
fn read_head(
    stream: &mut TcpStream,
    before: impl Fn(&TcpStream) -> io::Result<()>,
) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut part = [0; 2048];
    while head.len() < HEAD_MAX && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        before(stream)?;
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            len => head.extend_from_slice(part.get(..len).unwrap_or_default()),
        }
    }
    Ok(head)
}

const OK: &str = "200 OK";

struct Answer<'a> {
    status: &'static str,
    body: &'a [u8],
    with_body: bool,
}

/// Decides on the answer to a request.
fn answer<'a>(head: &[u8], port: u16, page: &'a [u8]) -> Answer<'a> {
    let refuse =
        |status, body: &'static str| Answer { status, body: body.as_bytes(), with_body: true };
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    if !matches!(request.parse(head), Ok(httparse::Status::Complete(_))) {
        return refuse("400 Bad Request", "This is not an HTTP/1 request.\n");
    }
    let mut hosts = request.headers.iter().filter(|one| one.name.eq_ignore_ascii_case("host"));
    let host = hosts.next().and_then(|header| std::str::from_utf8(header.value).ok());
    // Browsers leave out the port of HTTP.
    let plain = |host: &'static str| (port == 80).then(|| host.to_owned());
    let names =
        ["127.0.0.1", "localhost"].map(|host| [Some(format!("{host}:{port}")), plain(host)]);
    let is_own =
        |host: &str| names.iter().flatten().flatten().any(|name| name.eq_ignore_ascii_case(host));
    if hosts.next().is_some() || !host.is_some_and(is_own) {
        return refuse("403 Forbidden", "The request names another server.\n");
    }
    let is_head = request.method == Some("HEAD");
    if !is_head && request.method != Some("GET") {
        return refuse("405 Method Not Allowed", "Only GET and HEAD are answered.\n");
    }
    let path = request.path.map(|path| path.split('?').next().unwrap_or(path));
    let answer = match path {
        Some("/" | "/index.html") => Answer { status: OK, body: page, with_body: true },
        _ => refuse("404 Not Found", "There is one page, at /.\n"),
    };
    Answer { with_body: !is_head, ..answer }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(head: &str) -> (&'static str, bool) {
        let answer = answer(head.as_bytes(), 7000, b"page");
        (answer.status, answer.with_body)
    }

    #[test]
    fn only_this_server_is_asked_and_only_for_its_page() {
        let local = "Host: 127.0.0.1:7000\r\n\r\n";
        assert_eq!(status(&format!("GET / HTTP/1.1\r\n{local}")), ("200 OK", true));
        assert_eq!(status("GET /?a=1 HTTP/1.1\r\nhOST: localhost:7000\r\n\r\n"), ("200 OK", true));
        assert_eq!(status(&format!("HEAD /index.html HTTP/1.1\r\n{local}")), ("200 OK", false));
        assert_eq!(status(&format!("GET /../x HTTP/1.1\r\n{local}")).0, "404 Not Found");
        assert_eq!(status(&format!("POST / HTTP/1.1\r\n{local}")).0, "405 Method Not Allowed");
        for host in
            ["evil.example:7000", "127.0.0.1", "127.0.0.1:7001", "localhost.evil.example:7000"]
        {
            let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(status(&head).0, "403 Forbidden", "{host}");
        }
        assert_eq!(status("GET / HTTP/1.1\r\nHost: LOCALHOST:7000\r\n\r\n").0, "200 OK");
        let on_80 = |host: &str| {
            answer(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes(), 80, b"").status
        };
        assert_eq!((on_80("localhost"), on_80("127.0.0.1:80")), ("200 OK", "200 OK"));
        assert_eq!(on_80("evil.example"), "403 Forbidden");
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n").0, "403 Forbidden");
        let two = "GET / HTTP/1.1\r\nHost: localhost:7000\r\nHost: evil.example\r\n\r\n";
        assert_eq!(status(two).0, "403 Forbidden");
        assert_eq!(status("\x16\x03\x01 hello\r\n\r\n").0, "400 Bad Request");
    }
}
