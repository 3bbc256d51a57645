//! Serves pages to browsers on this machine.
//!
//! | module | one line |
//! |---|---|
//! | [`browser`] | opens pages in the browser of the desktop |
//! | [`connections`] | the open connections, and which of them must give way |
//! | [`request`] | the requests of browsers, and which of them are refused |
//! | [`feed`] | the last hour of a database, which all pages share |
//! | [`source`] | the thread that follows a database into a feed |
//! | [`live`] | the live picture of a database: its page, its stream, its changes |
//! | [`token`] | the secret in the address of a live picture |
//!
//! The server listens on the loopback interface alone. Other sites that a browser shows could still send it
//! requests, directly or through a name that they let point to this machine (DNS rebinding). So a request must
//! name this server in `Host` and, if it has one, in `Origin`. GET and HEAD change nothing.

pub(crate) mod browser;
mod connections;
pub(crate) mod feed;
pub(crate) mod live;
pub(crate) mod request;
pub(crate) mod source;
pub(crate) mod token;

use std::borrow::Cow;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use self::connections::Connections;
use self::request::Request;

/// How long a client may take for its request, and for each write of the answer.
const REQUEST_MAX: Duration = Duration::from_secs(5);
const WRITE_MAX: Duration = Duration::from_secs(10);

/// How long the server waits if the process has too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The headers of every answer. The page has a policy of its own contents.
const HEADERS: &str = "Cache-Control: no-store\r\n\
    Content-Security-Policy: frame-ancestors 'none'\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Referrer-Policy: no-referrer\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Connection: close\r\n";

/// The page, which contains all of its scripts and the WebAssembly module. `cargo xtask page` builds it.
pub(crate) static PAGE: &[u8] = include_bytes!("../page/explorer.html");

/// Returns the page as text, to put a run into it.
pub(crate) fn explorer_page() -> &'static str {
    // The build writes UTF-8, which a test checks.
    std::str::from_utf8(PAGE).unwrap_or_default()
}

/// The contents that a server shows.
pub(crate) trait Site: Send + Sync + 'static {
    /// Answers a request that names this server.
    fn answer(&self, request: &Request<'_>) -> Answer;
}

/// Writes an answer without a known length.
pub(crate) type Stream = Box<dyn FnOnce(&mut TcpStream) -> io::Result<()> + Send>;

/// The answer to a request.
pub(crate) enum Answer {
    /// A status, the type of the content, and the content.
    Whole(&'static str, &'static str, Cow<'static, [u8]>),
    /// A stream of events.
    Stream(Stream),
}

pub(crate) const OK: &str = "200 OK";
pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const JSON: &str = "application/json";

impl Answer {
    /// Returns a refusal with its reason.
    pub(crate) fn refused(status: &'static str, why: &'static str) -> Self {
        Self::Whole(status, "text/plain; charset=utf-8", Cow::Borrowed(why.as_bytes()))
    }

    /// Returns the page.
    pub(crate) fn page() -> Self {
        Self::Whole(OK, HTML, Cow::Borrowed(PAGE))
    }

    /// Returns the refusal of an unknown path.
    pub(crate) fn unknown() -> Self {
        Self::refused("404 Not Found", "There is one page, at /.\n")
    }
}

/// A site that is the page alone.
#[derive(Debug)]
pub(crate) struct PageAlone;

impl Site for PageAlone {
    fn answer(&self, request: &Request<'_>) -> Answer {
        if !request.is_read() {
            return Answer::refused("405 Method Not Allowed", "Only GET and HEAD are answered.\n");
        }
        if request.is_for_page() { Answer::page() } else { Answer::unknown() }
    }
}

/// A server for the browsers of this machine.
#[derive(Debug)]
pub(crate) struct WebServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl WebServer {
    /// Listens on a port of the loopback interface; 0 is any free one.
    pub(crate) fn listen(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves a site to every client until the process ends.
    ///
    /// # Errors
    /// The listener failed. A connection that fails only ends itself.
    pub(crate) fn serve(&self, site: &Arc<impl Site>) -> io::Result<()> {
        let open = Arc::new(Connections::default());
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
            let Some(connection) = open.begin(&stream) else { continue };
            let (port, site) = (self.address.port(), Arc::clone(site));
            let answer = move || {
                // The client has gone, or was too slow.
                let _ = answer_on(stream, port, &*site, || connection.has_asked());
            };
            // Without a thread, the connection ends with the closure.
            drop(thread::Builder::new().name("terrane-page".to_owned()).spawn(answer));
        }
    }
}

/// Reads a request, and answers it. Calls `asked` once the request is complete.
fn answer_on(
    mut stream: TcpStream,
    port: u16,
    site: &dyn Site,
    asked: impl FnOnce(),
) -> io::Result<()> {
    let until = Instant::now() + REQUEST_MAX;
    let message = request::read(&mut stream, |stream| {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            stream.set_read_timeout(Some(left))
        }
    })?;
    asked();
    stream.set_write_timeout(Some(WRITE_MAX))?;
    let parsed = message.as_deref().map_err(|refusal| *refusal);
    let (answer, with_body) = match parsed.and_then(|message| Request::parse(message, port)) {
        Ok(request) => (site.answer(&request), !request.is_head()),
        Err((status, why)) => (Answer::refused(status, why), true),
    };
    match answer {
        Answer::Whole(status, kind, body) => {
            let len = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n{HEADERS}\r\n"
            )?;
            if with_body {
                stream.write_all(&body)?;
            }
        }
        Answer::Stream(events) => {
            write!(stream, "HTTP/1.1 {OK}\r\nContent-Type: text/event-stream\r\n{HEADERS}\r\n")?;
            if with_body {
                events(&mut stream)?;
            }
        }
    }
    stream.flush()
}

/// Returns true for errors after which a listener cannot go on.
fn is_of_listener(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::NotConnected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(message: &str) -> &'static str {
        match Request::parse(message.as_bytes(), 7000) {
            Ok(request) => match PageAlone.answer(&request) {
                Answer::Whole(status, _, _) => status,
                Answer::Stream(_) => "stream",
            },
            Err((status, _)) => status,
        }
    }

    #[test]
    fn the_page_alone_is_read() {
        let local = "Host: 127.0.0.1:7000\r\n\r\n";
        assert_eq!(status(&format!("GET / HTTP/1.1\r\n{local}")), OK);
        assert_eq!(status("GET /?a=1 HTTP/1.1\r\nhOST: localhost:7000\r\n\r\n"), OK);
        assert_eq!(status(&format!("HEAD /index.html HTTP/1.1\r\n{local}")), OK);
        assert_eq!(status(&format!("GET /../x HTTP/1.1\r\n{local}")), "404 Not Found");
        assert_eq!(status(&format!("GET /live/stream HTTP/1.1\r\n{local}")), "404 Not Found");
        assert_eq!(status(&format!("POST / HTTP/1.1\r\n{local}")), "405 Method Not Allowed");
    }

    #[test]
    fn the_page_contains_everything() {
        let page = std::str::from_utf8(PAGE).unwrap();
        assert!(page.contains("<title>Terrane: design explorer</title>"));
        for other in [" src=\"", "<link rel=\"stylesheet\"", "SCRIPT-HASHES", "'unsafe-inline'"] {
            assert!(!page.contains(other), "{other}");
        }
        assert!(page.len() < 1 << 20);
    }
}
