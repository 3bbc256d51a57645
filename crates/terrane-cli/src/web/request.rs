//! The requests of browsers.

use std::io::{self, Read};
use std::net::TcpStream;

/// The longest head of a request. Cookies of other programs at this address count.
const HEAD_MAX: usize = 64 << 10;

/// The longest body of a request.
const BODY_MAX: usize = 64 << 10;

/// A request that names this server.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    method: &'a str,
    path: &'a str,
    query: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    body: &'a [u8],
}

/// A status, and why a request is refused.
pub(crate) type Refusal = (&'static str, &'static str);

const BAD: &str = "400 Bad Request";
const TOO_LONG_HEAD: Refusal =
    ("431 Request Header Fields Too Large", "The head of the request exceeds 64 KiB.\n");
const TOO_LONG_BODY: Refusal =
    ("413 Content Too Large", "The body of the request exceeds 64 KiB.\n");
const FORBIDDEN: &str = "403 Forbidden";

impl<'a> Request<'a> {
    /// Reads a request to the server at a port.
    ///
    /// # Errors
    /// It is not HTTP/1, or it names another server in `Host` or comes from another site.
    pub(crate) fn parse(message: &'a [u8], port: u16) -> Result<Self, Refusal> {
        let bad = (BAD, "This is not an HTTP/1 request.\n");
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Request::new(&mut headers);
        let Ok(httparse::Status::Complete(head)) = parsed.parse(message) else { return Err(bad) };
        let (Some(method), Some(target)) = (parsed.method, parsed.path) else { return Err(bad) };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        // A value that is not UTF-8 is none that this server knows.
        let text = |header: &httparse::Header<'a>| {
            (header.name, std::str::from_utf8(header.value).unwrap_or("\u{fffd}"))
        };
        let headers = parsed.headers.iter().map(text).collect();
        let body = message.get(head..).unwrap_or_default();
        let request = Self { method, path, query, headers, body };
        request.check_origin(port)?;
        Ok(request)
    }

    fn check_origin(&self, port: u16) -> Result<(), Refusal> {
        let names = ["127.0.0.1", "localhost"];
        let is_own = |host: &str| {
            let (name, given) = host.rsplit_once(':').unwrap_or((host, "80"));
            names.iter().any(|own| own.eq_ignore_ascii_case(name)) && given == port.to_string()
        };
        if !self.header("host").is_some_and(is_own) || self.has_two("host") {
            return Err((FORBIDDEN, "The request names another server.\n"));
        }
        let origins = self.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("origin"));
        let is_foreign = |origin: &str| !origin.strip_prefix("http://").is_some_and(is_own);
        if origins.into_iter().any(|(_, origin)| is_foreign(origin)) {
            return Err((FORBIDDEN, "The request comes from another site.\n"));
        }
        Ok(())
    }

    fn has_two(&self, name: &str) -> bool {
        self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).count() > 1
    }

    /// Returns the first header with this name.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        let mut headers = self.headers.iter();
        headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// Returns a parameter of the address; values need no escapes.
    pub(crate) fn parameter(&self, name: &str) -> Option<&'a str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(crate) fn path(&self) -> &'a str {
        self.path
    }

    pub(crate) fn body(&self) -> &'a [u8] {
        self.body
    }

    pub(crate) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// Returns true for a request that only reads.
    pub(crate) fn is_read(&self) -> bool {
        self.is_head() || self.method == "GET"
    }

    pub(crate) fn is_post(&self) -> bool {
        self.method == "POST"
    }

    /// Returns true for a request for the page.
    pub(crate) fn is_for_page(&self) -> bool {
        matches!(self.path, "/" | "/index.html")
    }
}

/// Returns the bytes of a request with its body, or why it is refused. Calls `before` before each read.
pub(crate) fn read(
    stream: &mut TcpStream,
    before: impl Fn(&TcpStream) -> io::Result<()>,
) -> io::Result<Result<Vec<u8>, Refusal>> {
    let mut message = Vec::new();
    let mut part = [0; 2048];
    let (mut len, mut searched) = (None, 0);
    loop {
        if len.is_none() {
            let new = message.get(searched..).unwrap_or_default();
            if let Some(end) = new.windows(4).position(|end| end == b"\r\n\r\n") {
                let head = searched + end;
                let body = content_length(message.get(..head).unwrap_or_default());
                if body > BODY_MAX {
                    return Ok(Err(TOO_LONG_BODY));
                }
                len = Some(head + 4 + body);
            } else if message.len() >= HEAD_MAX {
                return Ok(Err(TOO_LONG_HEAD));
            }
            // The end may begin with the last three bytes.
            searched = message.len().saturating_sub(3);
        }
        if len.is_some_and(|len| message.len() >= len) {
            return Ok(Ok(message));
        }
        before(stream)?;
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => message.extend_from_slice(part.get(..count).unwrap_or_default()),
        }
    }
}

/// Returns the length of the body of a request; 0 if it has none.
fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head);
    let pairs = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = pairs.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths.next().and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(head: &str, port: u16) -> Option<&'static str> {
        Request::parse(format!("{head}\r\n\r\n").as_bytes(), port).err().map(|(status, _)| status)
    }

    #[test]
    fn a_request_names_this_server() {
        let get = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}");
        for host in ["127.0.0.1:7000", "localhost:7000", "LOCALHOST:7000"] {
            assert_eq!(refused(&get(host), 7000), None, "{host}");
        }
        for host in
            ["evil.example:7000", "127.0.0.1", "127.0.0.1:7001", "localhost.evil.example:7000"]
        {
            assert_eq!(refused(&get(host), 7000), Some(FORBIDDEN), "{host}");
        }
        // Browsers leave out the port of HTTP.
        assert_eq!(refused(&get("localhost"), 80), None);
        assert_eq!(refused(&get("127.0.0.1:80"), 80), None);
        assert_eq!(refused(&get("evil.example"), 80), Some(FORBIDDEN));
        assert_eq!(refused("GET / HTTP/1.1", 7000), Some(FORBIDDEN));
        let two = "GET / HTTP/1.1\r\nHost: localhost:7000\r\nHost: evil.example";
        assert_eq!(refused(two, 7000), Some(FORBIDDEN));
        assert_eq!(refused("\x16\x03\x01 hello", 7000), Some(BAD));
    }

    #[test]
    fn a_request_comes_from_this_server_if_it_says_where_from() {
        let from = |origin: &str| {
            refused(
                &format!("POST /live/design HTTP/1.1\r\nHost: 127.0.0.1:7000\r\nOrigin: {origin}"),
                7000,
            )
        };
        assert_eq!(from("http://127.0.0.1:7000"), None);
        assert_eq!(from("http://localhost:7000"), None);
        for origin in
            ["http://evil.example:7000", "https://127.0.0.1:7000", "http://127.0.0.1:7001", "null"]
        {
            assert_eq!(from(origin), Some(FORBIDDEN), "{origin}");
        }
        assert_eq!(from("http://127.0.0.1:7000\r\nOrigin: http://evil.example"), Some(FORBIDDEN));
    }

    #[test]
    fn parts_of_a_request_are_found() {
        let message =
            b"POST /live/design?token=ab&x=1 HTTP/1.1\r\nHost: localhost:7000\r\nX-A: b\r\n\r\n{}";
        let request = Request::parse(message, 7000).unwrap();
        assert_eq!((request.path(), request.parameter("token")), ("/live/design", Some("ab")));
        assert_eq!((request.parameter("toke"), request.header("x-a")), (None, Some("b")));
        assert!(request.is_post() && !request.is_read() && request.body() == b"{}");
        assert_eq!(content_length(b"POST / HTTP/1.1\r\ncontent-LENGTH:  12"), 12);
        assert_eq!(content_length(b"POST / HTTP/1.1\r\nContent-Length: x"), 0);
    }

    #[test]
    fn a_request_is_read_whole_or_refused_with_the_reason() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let sent = |message: Vec<u8>| {
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let mut stream = listener.accept().unwrap().0;
            let writer = std::thread::spawn(move || {
                // In parts that divide the end of the head; the server may not read all.
                let _ =
                    message.chunks(7).try_for_each(|part| io::Write::write_all(&mut client, part));
            });
            let read = read(&mut stream, |_| Ok(())).unwrap();
            drop(stream);
            writer.join().unwrap();
            read
        };
        let request = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc".to_vec();
        assert_eq!(sent(request.clone()), Ok(request));
        let long = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", BODY_MAX + 1);
        assert_eq!(sent(long.into_bytes()), Err(TOO_LONG_BODY));
        let cookies = |len: usize| format!("GET / HTTP/1.1\r\nCookie: {}\r\n\r\n", "a".repeat(len));
        assert_eq!(sent(cookies(20_000).into_bytes()).map(|all| all.len()), Ok(20_028));
        assert_eq!(sent(cookies(2 * HEAD_MAX).into_bytes()), Err(TOO_LONG_HEAD));
    }
}
