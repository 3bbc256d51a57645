//! A connection of an HTTP client, which sends one request and reads one response.

use std::io::{self, Read, Write};
use std::time::Instant;

use mio::net::TcpStream;

/// The longest head of a request.
const MAX_HEAD: usize = 8 << 10;

/// The parts of a request that matter.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) authorization: Option<Vec<u8>>,
}

/// A connection. Its calls never wait for the client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) stream: TcpStream,
    /// The time at which the connection is closed, whatever the client does.
    pub(super) deadline: Instant,
    head: Vec<u8>,
    /// Empty until the request is complete.
    response: Vec<u8>,
    sent: usize,
}

impl Client {
    pub(super) fn new(stream: TcpStream, deadline: Instant) -> Self {
        Self { stream, deadline, head: Vec::new(), response: Vec::new(), sent: 0 }
    }

    /// Reads and writes as much as the socket allows. Returns true once the response is sent.
    ///
    /// # Errors
    /// The connection is broken, or the client closed it early.
    pub(super) fn advance(
        &mut self,
        respond: impl FnOnce(Option<&Request>) -> Vec<u8>,
    ) -> io::Result<bool> {
        if self.response.is_empty() {
            let Some(request) = self.read_request()? else { return Ok(false) };
            self.response = respond(request.as_ref());
        }
        self.send()
    }

    /// Returns the request once it is complete: `Some(None)` if it is not a GET.
    fn read_request(&mut self) -> io::Result<Option<Option<Request>>> {
        loop {
            match parse(&self.head) {
                Parsed::Partial if self.head.len() < MAX_HEAD => {}
                Parsed::Partial | Parsed::Invalid => return Ok(Some(None)),
                Parsed::Complete(request) => return Ok(Some(request)),
            }
            let mut part = [0; 1024];
            match self.stream.read(&mut part) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.head.extend_from_slice(part.get(..len).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn send(&mut self) -> io::Result<bool> {
        while let Some(rest) = self.response.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(len) => self.sent += len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// The beginning of a request.
enum Parsed {
    Partial,
    Invalid,
    /// `None` if the request is not a GET.
    Complete(Option<Request>),
}

fn parse(head: &[u8]) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Parsed::Partial,
        Err(_) => return Parsed::Invalid,
    }
    let path = request.path.filter(|_| request.method == Some("GET"));
    let path = path.map(|path| path.split('?').next().unwrap_or(path).to_owned());
    let mut headers = request.headers.iter();
    let found = headers.find(|it| it.name.eq_ignore_ascii_case("authorization"));
    let authorization = found.map(|header| header.value.to_vec());
    Parsed::Complete(path.map(|path| Request { path, authorization }))
}
