//! Serving a connection: reading, parsing, running commands.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Replies, Worker};
use crate::commands::run_request;
use crate::net::connection::{Connection, Input};
use crate::net::tls::Received;
use crate::protocol::{Parsed, ProtocolError, RequestParser};
use crate::session::Next;

/// The commands that a connection runs per iteration.
const COMMANDS: usize = 1024;

/// The replies after which a connection waits for the next iteration.
const REPLY_BYTES: usize = 1 << 20;

/// The time after which a request that could not run is tried again.
const RETRY: Duration = Duration::from_millis(5);

/// Why a connection stopped running commands.
#[derive(Clone, Copy)]
enum Stop {
    /// The rest is incomplete.
    NeedsMore,
    /// It is the turn of others.
    Turn,
    /// The session said so.
    Session(Next),
}

impl Worker {
    /// Reads from a connection and runs the commands that have arrived.
    pub(super) fn serve(&mut self, index: usize) {
        let Some(mut connection) = self.connections.get_mut(index).and_then(Option::take) else {
            return;
        };
        connection.is_queued = false;
        if connection.is_closing || connection.is_paused() {
            self.put_back(index, connection);
            return;
        }
        let start = self.out.len();
        if let Some(reply) = connection.paused_reply.take() {
            self.out.extend_from_slice(&reply);
            // It may show what another command has written meanwhile.
            if self.shared.durable.is_exposed() && self.out.len() > start {
                self.unsynced.push((start, self.out.len()));
            }
        }
        let served = self.read_and_run(index, &mut connection);
        let is_kept = match served {
            Ok(()) => true,
            // What was read before the end is answered.
            Err(_) if self.out.len() > start || connection.has_unsent() => {
                connection.is_closing = true;
                true
            }
            Err(_) => false,
        };
        let end = self.out.len();
        self.put_back(index, connection);
        if end > start {
            self.replies.push(Replies { connection: index, start, end });
        }
        if is_kept { self.after_serving(index, end - start) } else { self.close(index) }
    }

    fn put_back(&mut self, index: usize, connection: Connection) {
        if let Some(slot) = self.connections.get_mut(index) {
            *slot = Some(connection);
        }
    }

    fn after_serving(&mut self, index: usize, replied: usize) {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        let is_done = connection.is_closing && replied == 0 && !connection.has_unsent();
        if is_done || connection.has_abandoned() {
            self.close(index);
            return;
        }
        if connection.session.subscriptions.is_some() && !connection.is_subscriber {
            connection.is_subscriber = true;
            self.subscribers.push(index);
        }
        self.count_buffers(index);
    }

    /// Returns an error if the connection is to be closed.
    fn read_and_run(&mut self, index: usize, connection: &mut Connection) -> io::Result<()> {
        let mut received = 0;
        // Requests that were received come first. So a client that sends faster than it is answered has to
        // wait, and all that it sent before its end is answered.
        if connection.is_readable && !connection.is_behind {
            let Received { bytes, has_more } = connection.stream.read(&mut self.read_buffer)?;
            received = bytes;
            self.bytes_in += bytes as u64;
            connection.is_readable = has_more || (bytes > 0 && connection.has_ended);
        }
        if let Some(mut input) = connection.input.take() {
            let Input { bytes, parser } = &mut *input;
            bytes.extend_from_slice(self.read_buffer.get(..received).unwrap_or_default());
            let (used, stop) = self.run_all(connection, bytes, parser);
            if used < input.bytes.len() {
                input.bytes.drain(..used);
                connection.input = Some(input);
            }
            self.after_running(index, connection, stop);
        } else if received > 0 {
            // Taken out of the worker while commands run.
            let buffer = std::mem::take(&mut self.read_buffer);
            let mut parser = std::mem::take(&mut self.parser);
            let bytes = buffer.get(..received).unwrap_or_default();
            let (used, stop) = self.run_all(connection, bytes, &mut parser);
            let rest = bytes.get(used..).unwrap_or_default();
            if rest.is_empty() {
                self.parser = parser;
            } else {
                connection.input = Some(Box::new(Input { bytes: rest.to_vec(), parser }));
            }
            self.read_buffer = buffer;
            self.after_running(index, connection, stop);
        } else {
            self.after_running(index, connection, Stop::NeedsMore);
        }
        if received > 0 {
            let client = &connection.session.client;
            let at = self.now.saturating_duration_since(client.connected).as_millis();
            client.last_request_millis.store(at as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Queues the connection again if it has more to do.
    fn after_running(&mut self, index: usize, connection: &mut Connection, stop: Stop) {
        connection.is_behind = connection.input.is_some() && !matches!(stop, Stop::NeedsMore);
        let goes_on = match stop {
            Stop::NeedsMore => connection.is_readable,
            Stop::Turn => true,
            Stop::Session(Next::PauseUntil(until)) => {
                self.pause(index, connection, until);
                false
            }
            Stop::Session(Next::Retry) => {
                self.pause(index, connection, Instant::now() + RETRY);
                false
            }
            Stop::Session(Next::Wait) => {
                self.waiting.push(index);
                false
            }
            Stop::Session(_) => {
                connection.is_closing = true;
                connection.input = None;
                false
            }
        };
        if goes_on && !connection.is_queued {
            connection.is_queued = true;
            self.queue.push(index);
        }
    }

    fn pause(&mut self, index: usize, connection: &mut Connection, until: Instant) {
        connection.paused_until = Some(until);
        self.paused.push((until, index));
    }

    /// Runs the commands at the start of `bytes`; returns how many bytes they take.
    fn run_all(
        &mut self,
        connection: &mut Connection,
        bytes: &[u8],
        parser: &mut RequestParser,
    ) -> (usize, Stop) {
        let start = self.out.len();
        self.work.clock = Instant::now();
        let limits = &self.shared.config.limits;
        let (after_auth, before_auth) = (limits.request(), limits.request_before_auth());
        let output_bytes = limits.output_bytes;
        let waiting = connection.waiting();
        let mut used = 0;
        for _ in 0..COMMANDS {
            let session = &mut connection.session;
            let limits = if session.is_authenticated { &after_auth } else { &before_auth };
            let rest = bytes.get(used..).unwrap_or_default();
            let len = match parser.parse(rest, limits) {
                Ok(Parsed::Incomplete) => return (used, Stop::NeedsMore),
                Ok(Parsed::Complete(len)) => len,
                Err(ProtocolError(text)) => {
                    let line = format!("-ERR Protocol error: {text}\r\n");
                    self.out.extend_from_slice(line.as_bytes());
                    // Another connection uses it next.
                    parser.reset();
                    return (bytes.len(), Stop::Session(Next::Close));
                }
            };
            let arguments = parser.arguments(rest);
            let start_of_reply = self.out.len();
            if !arguments.is_empty() {
                let (shared, out) = (&self.shared, &mut self.out);
                let depends_on_sync = run_request(shared, session, arguments, out, &mut self.work);
                // A client may have turned replies off.
                if depends_on_sync && self.out.len() > start_of_reply {
                    self.unsynced.push((start_of_reply, self.out.len()));
                }
            }
            parser.reset();
            let next = std::mem::replace(&mut session.next, Next::Continue);
            if next == Next::Retry {
                return (used, Stop::Session(next));
            }
            used += len;
            if next != Next::Continue {
                if let Next::PauseUntil(_) = next {
                    let reply = self.out.split_off(start_of_reply);
                    connection.paused_reply = Some(reply.into());
                }
                return (used, Stop::Session(next));
            }
            let replied = self.out.len() - start;
            if waiting + replied > output_bytes {
                self.shared.counts.slow_clients.fetch_add(1, Ordering::Relaxed);
                self.out.truncate(start);
                self.unsynced.retain(|(begin, _)| *begin < start);
                return (bytes.len(), Stop::Session(Next::Close));
            }
            if replied > REPLY_BYTES {
                return (used, Stop::Turn);
            }
        }
        (used, if used < bytes.len() { Stop::Turn } else { Stop::NeedsMore })
    }
}
