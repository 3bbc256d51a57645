//! A client of a control socket.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use terrane::ErrorKind;

use super::address::{Directory, is_allowed, peer};
use super::lines::{Arrival, Lines};
use crate::failure::Failure;
use crate::protocol::{Envelope, Info, Message, PROTOCOL, Reply, Request};
use crate::watch::{Interest, LOOK_EVERY, Watch};

/// The longest message: the tree of a database with a million tables.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// How long a write may take. The server reads at once, unless it is stopped.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the server may take to send its greeting.
const GREETING_MAX: Duration = Duration::from_secs(10);

/// A connection to the process that has a database open.
///
/// See [`ControlSocket`](crate::ControlSocket) for an example.
#[derive(Debug)]
pub struct Client {
    lines: Lines,
    info: Info,
}

impl Client {
    /// Connects to the process that serves the database in a directory. Returns `None` if no process
    /// does.
    ///
    /// # Errors
    /// The socket belongs to another user, or the process does not answer, or refuses.
    pub fn connect(dir: impl AsRef<Path>) -> Result<Option<Self>, Failure> {
        let dir = dir.as_ref();
        let failed = |error: io::Error| {
            let text = format!("cannot connect to {}/control.sock: {error}", dir.display());
            Failure::new(ErrorKind::Io, text)
        };
        let Ok(directory) = Directory::open(dir) else { return Ok(None) };
        let Some(stream) = directory.connect().map_err(failed)? else { return Ok(None) };
        if !peer(&stream).map(is_allowed).map_err(failed)? {
            let text = format!("{}/control.sock is served by another user", dir.display());
            return Err(Failure::new(ErrorKind::Io, text));
        }
        let mut lines = Lines::new(stream, MESSAGE_BYTES_MAX, WRITE_TIMEOUT).map_err(failed)?;
        match message(&mut lines, GREETING_MAX).map_err(failed)? {
            Arrived::Message(message) => match *message {
                Message::Hello(info) => Ok(Some(Self { lines, info })),
                Message::Failed(failure) => Err(failure),
                other => Err(unexpected(&other)),
            },
            // The process was just killed, or is ending.
            Arrived::End => Ok(None),
            Arrived::Nothing => {
                let seconds = GREETING_MAX.as_secs();
                let text = format!(
                    "the process that has {} open did not answer within {seconds} s; it may be stopped",
                    dir.display()
                );
                Err(Failure::new(ErrorKind::Busy, text))
            }
            Arrived::Unknown(failure) => Err(failure),
        }
    }

    /// Returns the process that serves the socket.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Sends a request, and waits for its end. `watch` receives items and progress, and can cancel.
    ///
    /// # Errors
    /// The request failed or was cancelled, or the process has ended.
    pub fn ask(&mut self, request: &Request, watch: &mut dyn Watch) -> Result<Reply, Failure> {
        self.send(request)?;
        let mut is_cancelled = false;
        loop {
            if !is_cancelled && watch.interest() != Interest::Waiting {
                is_cancelled = true;
                self.send(&Request::Cancel)?;
            }
            let arrived = message(&mut self.lines, LOOK_EVERY);
            match arrived.map_err(|error| self.lost(&error.to_string()))? {
                Arrived::Nothing => {}
                Arrived::End => return Err(self.lost("it closed the connection, or has ended")),
                Arrived::Unknown(failure) => return Err(failure),
                Arrived::Message(message) => match *message {
                    Message::Progress(progress) => watch.progress(&progress),
                    Message::Item(item) => watch.item(item),
                    Message::Done(reply) => return Ok(reply),
                    Message::Failed(failure) => return Err(failure),
                    other @ Message::Hello(_) => return Err(unexpected(&other)),
                },
            }
        }
    }

    fn send(&mut self, request: &Request) -> Result<(), Failure> {
        let envelope = Envelope { protocol: PROTOCOL, request: request.clone() };
        self.lines.send(&envelope).map_err(|error| self.lost(&error.to_string()))
    }

    fn lost(&self, why: &str) -> Failure {
        let Info { pid, program, .. } = &self.info;
        let text = format!(
            "lost process {pid} ({program}), which had the database open: {why}; the request may have been \
             carried out in part"
        );
        Failure::new(ErrorKind::Closed, text)
    }
}

/// The outcome of a wait.
enum Arrived {
    Message(Box<Message>),
    Nothing,
    End,
    /// A message that this version does not understand.
    Unknown(Failure),
}

/// Waits for a message.
fn message(lines: &mut Lines, most: Duration) -> io::Result<Arrived> {
    let begun = Instant::now();
    let line = loop {
        match lines.arrival(most.saturating_sub(begun.elapsed()))? {
            Arrival::Line(line) => break line,
            Arrival::Nothing if begun.elapsed() < most => {}
            Arrival::Nothing => return Ok(Arrived::Nothing),
            Arrival::End => return Ok(Arrived::End),
            Arrival::TooLong => {
                let text = "the process that has the database open sent a message that is too long";
                return Ok(Arrived::Unknown(Failure::new(ErrorKind::Internal, text)));
            }
        }
    };
    Ok(match serde_json::from_slice(&line) {
        Ok(message) => Arrived::Message(Box::new(message)),
        Err(error) => {
            let text = format!(
                "the process that has the database open sent a message that this version cannot read: \
                 {error}; use the command of its version"
            );
            Arrived::Unknown(Failure::new(ErrorKind::Unsupported, text))
        }
    })
}

fn unexpected(message: &Message) -> Failure {
    let name = serde_json::to_value(message).ok();
    let name = name.as_ref().and_then(|value| value.get("message")?.as_str()).unwrap_or("?");
    Failure::new(ErrorKind::Internal, format!("unexpected message '{name}' from the server"))
}
