//! Metrics and health over HTTP, on a port of their own.
//!
//! `GET /metrics` answers in the OpenMetrics text format, `GET /health` with 200 if the database accepts
//! writes, and 503 with the error if not. One thread serves one request after the other, each for at most
//! two seconds.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::error::ServerError;
use crate::shared::Shared;

/// The time that a client has for its request and the answer.
const TIME: Duration = Duration::from_secs(2);

/// The longest head of a request.
const MAX_HEAD: usize = 8 << 10;

/// How often the thread looks for the end of the server.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens for scrapers.
#[derive(Debug)]
pub(crate) struct Metrics {
    listener: TcpListener,
}

impl Metrics {
    pub(crate) fn listen(address: SocketAddr) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Listen { address: address.to_string(), source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener })
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Answers until the server ends.
    pub(crate) fn run(self, shared: &Arc<Shared>) {
        while !shared.is_ending() {
            match self.listener.accept() {
                // A client that does not behave is left alone.
                Ok((stream, _)) => drop(answer(stream, shared)),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}

fn answer(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(TIME))?;
    let (status, kind, body) = match read_path(&mut stream)?.as_deref() {
        Some("/metrics") => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ("200 OK", kind, metrics(shared))
        }
        Some("/health") => match shared.databases.db().stats().error {
            None => ("200 OK", "text/plain; charset=utf-8", "ok\n".to_owned()),
            Some(error) => {
                ("503 Service Unavailable", "text/plain; charset=utf-8", format!("{error}\n"))
            }
        },
        Some(_) => {
            let paths = "the paths are /metrics and /health\n".to_owned();
            ("404 Not Found", "text/plain; charset=utf-8", paths)
        }
        None => ("400 Bad Request", "text/plain; charset=utf-8", "expected GET\n".to_owned()),
    };
    let len = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Reads the head of a request; returns the path of a GET, and none for anything else.
fn read_path(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let (mut head, deadline) = (Vec::new(), Instant::now() + TIME);
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) => {
                let path = request.path.filter(|_| request.method == Some("GET"));
                let path = path.map(|path| path.split('?').next().unwrap_or(path).to_owned());
                return Ok(path);
            }
            Ok(httparse::Status::Partial) if head.len() < MAX_HEAD => {}
            _ => return Ok(None),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut part = [0; 1024];
        match stream.read(&mut part)? {
            0 => return Ok(None),
            len => head.extend_from_slice(part.get(..len).unwrap_or_default()),
        }
    }
}

/// Returns the metrics of the database and those of the server.
fn metrics(shared: &Shared) -> String {
    let mut text = shared.databases.db().stats().open_metrics();
    // The end of the text follows the metrics of the server.
    text.truncate(text.trim_end().trim_end_matches("# EOF").len());
    let counts = &shared.counts;
    for (name, help, count) in [
        ("commands", "Commands that were run.", &counts.commands),
        ("connections", "Connections that were accepted.", &counts.connections),
        ("connections_rejected", "Connections over the limit.", &counts.rejected),
        ("errors", "Answers that are errors.", &counts.errors),
        ("slow_clients", "Clients that did not read their replies.", &counts.slow_clients),
        ("received_bytes", "Bytes received from clients.", &counts.bytes_in),
        ("sent_bytes", "Bytes of replies.", &counts.bytes_out),
    ] {
        let (name, value) = (format!("terrane_server_{name}"), count.load(Ordering::Relaxed));
        // Writing to a string does not fail.
        let _ = write!(text, "# TYPE {name} counter\n# HELP {name} {help}\n{name}_total {value}\n");
    }
    let (clients, buffers) = (shared.clients.len(), shared.buffered.load(Ordering::Relaxed));
    for (name, help, value) in [
        ("connected_clients", "Connections that are open.", clients),
        ("buffer_bytes", "Bytes in the buffers of all connections.", buffers),
    ] {
        let name = format!("terrane_server_{name}");
        let _ = write!(text, "# TYPE {name} gauge\n# HELP {name} {help}\n{name} {value}\n");
    }
    text + "# EOF\n"
}
