//! Metrics and health over HTTP, on a port of their own.
//!
//! `GET /metrics` answers in the OpenMetrics text format, `GET /health` with 200 if the database accepts
//! writes, and 503 with the error if not. One thread serves one request after the other, each for at most
//! two seconds. On an address that other hosts can reach, `/metrics` requires the name and the password of a
//! user who may use all keyspaces, unless the server has no users.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::base::error::ServerError;
use crate::call::shared::Shared;
use crate::state::users::{User, Users};

/// The time that a client has for its request and the answer.
const TIME: Duration = Duration::from_secs(2);

/// The longest head of a request.
const MAX_HEAD: usize = 8 << 10;

/// How often the thread checks whether the server ends.
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
        let is_local = self.address().is_some_and(|address| address.ip().is_loopback());
        let is_open = is_local || shared.config.users.is_empty();
        while !shared.is_ending() {
            match self.listener.accept() {
                // A misbehaving client gets no answer.
                Ok((stream, _)) => drop(answer(stream, shared, is_open)),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}

fn answer(mut stream: TcpStream, shared: &Shared, is_open: bool) -> io::Result<()> {
    const TEXT: &str = "text/plain; charset=utf-8";
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(TIME))?;
    let request = read_request(&mut stream)?;
    let (path, users) = (request.as_ref().map(|request| &*request.path), &shared.config.users);
    let authorization = request.as_ref().and_then(|request| request.authorization.as_deref());
    let (status, kind, body) = match path {
        Some("/metrics") if !is_open && !may_see_metrics(users, authorization) => {
            let status = "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"terrane\"";
            (status, TEXT, "a user who may use all keyspaces may see this\n".to_owned())
        }
        Some("/metrics") => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ("200 OK", kind, metrics(shared))
        }
        Some("/health") => match shared.databases.db().stats().error {
            None => ("200 OK", TEXT, "ok\n".to_owned()),
            Some(_) if !is_open => ("503 Service Unavailable", TEXT, "failed\n".to_owned()),
            Some(error) => ("503 Service Unavailable", TEXT, format!("{error}\n")),
        },
        Some(_) => ("404 Not Found", TEXT, "the paths are /metrics and /health\n".to_owned()),
        None => ("400 Bad Request", TEXT, "expected GET\n".to_owned()),
    };
    let len = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Returns whether the value of an `Authorization` header identifies a user who may use all keyspaces.
fn may_see_metrics(users: &Users, authorization: Option<&[u8]>) -> bool {
    let credentials = authorization.and_then(|value| value.split_at_checked(6));
    let credentials = credentials.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"basic "));
    let decoded = credentials.and_then(|(_, text)| decode_base64(text));
    let Some(decoded) = decoded else { return false };
    let mut parts = decoded.splitn(2, |byte| *byte == b':');
    let (name, password) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    users.find(name, password).is_some_and(User::may_use_all)
}

/// Decodes base64, with or without padding.
fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in text.trim_ascii().iter().copied().filter(|byte| *byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}

/// The parts of a request that matter.
struct Request {
    path: String,
    authorization: Option<Vec<u8>>,
}

/// Reads the head of a request; returns `None` unless it is a GET.
fn read_request(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let (mut head, deadline) = (Vec::new(), Instant::now() + TIME);
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) => {
                let path = request.path.filter(|_| request.method == Some("GET"));
                let path = path.map(|path| path.split('?').next().unwrap_or(path).to_owned());
                let mut headers = request.headers.iter();
                let found = headers.find(|it| it.name.eq_ignore_ascii_case("authorization"));
                let authorization = found.map(|header| header.value.to_vec());
                return Ok(path.map(|path| Request { path, authorization }));
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
    // Remove the end marker, which must follow the metrics of the server.
    text.truncate(text.trim_end().trim_end_matches("# EOF").len());
    let counts = &shared.counts;
    for (name, help, count) in [
        ("commands", "Commands that were run.", &counts.commands),
        ("connections", "Connections that were accepted.", &counts.connections),
        ("connections_rejected", "Connections over the limit.", &counts.rejected),
        ("errors", "Answers that are errors.", &counts.errors),
        ("slow_clients", "Clients that did not read their replies.", &counts.slow_clients),
        (
            "failed_handshakes",
            "Connections that ended in the TLS handshake.",
            &counts.failed_handshakes,
        ),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_those_of_users_of_all_keyspaces() {
        let users = "app s3cret:x write:*\nsome pw read:default\nall pw read:*";
        let users: Users = users.parse().unwrap();
        let may = |value: &str| may_see_metrics(&users, Some(value.as_bytes()));
        // app:s3cret:x, all:pw
        assert!(may("Basic YXBwOnMzY3JldDp4") && may("basic YWxsOnB3") && may("Basic YWxsOnB3=="));
        // some:pw, all:no, nobody:, and nonsense
        for value in [
            "Basic c29tZTpwdw==",
            "Basic YWxsOm5v",
            "Basic bm9ib2R5Og==",
            "Basic ?",
            "YWxsOnB3",
            "",
        ] {
            assert!(!may(value), "{value}");
        }
        assert!(!may_see_metrics(&users, None));
        assert_eq!(decode_base64(b"/+8=").unwrap(), [0xff, 0xef]);
    }
}
