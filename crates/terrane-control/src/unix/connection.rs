//! The requests of one client.

use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use terrane::{Db, ErrorKind, Maintenance};

use super::lines::{Arrival, Lines};
use crate::execute::execute;
use crate::failure::Failure;
use crate::protocol::{Envelope, Info, Item, Message, PROTOCOL, Progress, Reply, Request};
use crate::watch::{Interest, Watch};

/// The longest request. Its longest parts are two keys of 64 KiB each, in hexadecimal.
const REQUEST_BYTES_MAX: usize = 512 << 10;

/// A client that does not read for this long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// A client that sends nothing for this long between two requests is disconnected.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// How often an idle connection checks whether the database was closed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Requests that a client may send before the first one is done.
const WAITING_MAX: usize = 16;

/// The state that all connections of a socket share.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) db: Db,
    pub(super) info: Info,
    pub(super) is_stopping: AtomicBool,
}

impl Served {
    /// Returns true if the socket is being removed, or the database was closed.
    pub(super) fn is_closing(&self) -> bool {
        let is_closed = || {
            let state = Maintenance::of(&self.db).check_writable();
            state.is_err_and(|error| error.kind() == ErrorKind::Closed)
        };
        self.is_stopping.load(Ordering::Acquire) || is_closed()
    }
}

/// Sends a client the reason why it is not served.
pub(super) fn refuse(stream: UnixStream, why: Failure) {
    if let Ok(mut lines) = Lines::new(stream, 0, LOOK_EVERY) {
        // A client that is already gone needs no reason.
        let _ = lines.send(&Message::Failed(why));
    }
}

/// Serves a client until it leaves, or until the database is closed.
pub(super) fn serve(stream: UnixStream, served: &Arc<Served>) {
    let Ok(lines) = Lines::new(stream, REQUEST_BYTES_MAX, WRITE_TIMEOUT) else { return };
    let mut client = Connected {
        served: Arc::clone(served),
        lines,
        waiting: VecDeque::new(),
        interest: Interest::Waiting,
    };
    client.send(&Message::Hello(served.info.clone()));
    let mut idle_since = Instant::now();
    while client.interest != Interest::Gone {
        if served.is_closing() {
            client.send(&Message::Failed(Failure::closed()));
            return;
        }
        let arrival = match client.waiting.pop_front() {
            Some(line) => Ok(Arrival::Line(line)),
            None => client.lines.arrival(LOOK_EVERY),
        };
        match arrival {
            Ok(Arrival::Line(line)) => {
                client.answer(&line);
                idle_since = Instant::now();
            }
            Ok(Arrival::Nothing) if idle_since.elapsed() < IDLE_MAX => {}
            Ok(Arrival::Nothing) => {
                let text = format!("no request came for {} s", IDLE_MAX.as_secs());
                client.send(&Message::Failed(Failure::invalid(text)));
                return;
            }
            Ok(Arrival::TooLong) => {
                let text = format!("a request is longer than {REQUEST_BYTES_MAX} bytes");
                client.send(&Message::Failed(Failure::invalid(text)));
                return;
            }
            Ok(Arrival::End) | Err(_) => return,
        }
    }
}

/// A client that waits for an answer.
struct Connected {
    served: Arc<Served>,
    lines: Lines,
    /// Requests that arrived while another one ran.
    waiting: VecDeque<Vec<u8>>,
    /// Never changes once it is [`Interest::Gone`].
    interest: Interest,
}

impl Connected {
    fn send(&mut self, message: &Message) {
        if self.interest != Interest::Gone && self.lines.send(message).is_err() {
            self.interest = Interest::Gone;
        }
    }

    fn answer(&mut self, line: &[u8]) {
        let answer = parse(line).and_then(|request| match request {
            // The request to cancel had finished when this one arrived.
            Request::Cancel => Ok(None),
            Request::Ping => Ok(Some(Reply::Info(self.served.info.clone()))),
            request => {
                self.interest = Interest::Waiting;
                let db = self.served.db.clone();
                execute(&db, &request, self).map(Some)
            }
        });
        match answer {
            Ok(None) => {}
            Ok(Some(reply)) => self.send(&Message::Done(reply)),
            Err(failure) => {
                let is_last = failure.kind() == Some(ErrorKind::Closed);
                self.send(&Message::Failed(failure));
                if is_last {
                    self.interest = Interest::Gone;
                }
            }
        }
    }
}

fn parse(line: &[u8]) -> Result<Request, Failure> {
    let envelope: Envelope = serde_json::from_slice(line)
        .map_err(|error| Failure::invalid(format!("the request cannot be read: {error}")))?;
    if envelope.protocol == PROTOCOL {
        return Ok(envelope.request);
    }
    let text = format!(
        "the request has version {} of the protocol, but this process reads version {PROTOCOL}; use the \
         command of its version",
        envelope.protocol
    );
    Err(Failure::new(ErrorKind::Unsupported, text))
}

impl Watch for Connected {
    fn item(&mut self, item: Item) {
        self.send(&Message::Item(item));
    }

    fn progress(&mut self, progress: &Progress) {
        self.send(&Message::Progress(progress.clone()));
    }

    fn interest(&mut self) -> Interest {
        while self.interest == Interest::Waiting {
            if self.served.is_closing() {
                return Interest::Closing;
            }
            self.interest = match self.lines.arrival(Duration::ZERO) {
                Ok(Arrival::Nothing) => return Interest::Waiting,
                Ok(Arrival::Line(line)) => match parse(&line) {
                    Ok(Request::Cancel) => Interest::Cancelled,
                    _ if self.waiting.len() >= WAITING_MAX => Interest::Gone,
                    _ => {
                        self.waiting.push_back(line);
                        Interest::Waiting
                    }
                },
                Ok(Arrival::End | Arrival::TooLong) | Err(_) => Interest::Gone,
            };
        }
        self.interest
    }
}
