//! Serving a connection: reading, parsing, running commands.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{READ_BYTES, Worker};
use crate::commands::{RETRY, Request, run_request};
use crate::net::connection::{Connection, Input};
use crate::net::tls::Received;
use crate::protocol::{Parsed, ProtocolError, RequestParser, Span};
use crate::state::session::Next;

/// The commands that a connection runs per iteration.
const COMMANDS: usize = 1024;

/// The replies after which a connection waits for the next iteration.
const REPLY_BYTES: usize = 1 << 20;

/// Why a connection stopped running commands.
#[derive(Clone, Copy)]
pub(super) enum Stop {
    /// The rest is incomplete.
    NeedsMore,
    /// Other connections get their turn.
    Turn,
    /// The session asks for it.
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
        self.serving = (index, 0);
        if let Some(reply) = connection.paused_reply.take() {
            let start = self.out.len();
            self.out.extend_from_slice(&reply);
            // The reply may show what another command has written meanwhile.
            self.add_reply(index, start..self.out.len(), self.shared.durable.is_exposed());
        }
        let served = self.read_and_run(index, &mut connection);
        let is_kept = match served {
            Ok(()) => true,
            Err(_) if connection.stream.is_handshaking() => false,
            // Requests that were read before the end are answered.
            Err(_) if self.has_replies(index) || connection.has_unsent() => {
                connection.is_closing = true;
                true
            }
            Err(_) => false,
        };
        self.put_back(index, connection);
        if is_kept { self.after_serving(index) } else { self.close(index) }
    }

    pub(super) fn put_back(&mut self, index: usize, connection: Connection) {
        if let Some(slot) = self.connections.get_mut(index) {
            *slot = Some(connection);
        }
    }

    fn after_serving(&mut self, index: usize) {
        let Some(connection) = self.connections.get(index).and_then(Option::as_ref) else {
            return;
        };
        let is_silent = connection.is_closing && !connection.has_unsent();
        if connection.has_abandoned() || (is_silent && !self.has_replies(index)) {
            self.close(index);
            return;
        }
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        if connection.session.subscriptions.is_some() && !connection.is_subscriber {
            connection.is_subscriber = true;
            self.subscribers.push(index);
        }
        self.count_buffers(index);
    }

    /// Returns an error if the connection must be closed.
    fn read_and_run(&mut self, index: usize, connection: &mut Connection) -> io::Result<()> {
        if self.grouped_bytes > READ_BYTES {
            self.run_groups();
        }
        let mut received = 0..0;
        // Received requests come first, so a client that sends faster than it is answered has to wait, and
        // everything that it sent before its end is answered.
        if connection.is_readable && !connection.is_behind {
            let place = self.grouped_bytes..self.grouped_bytes + READ_BYTES;
            let buffer = self.read_buffer.get_mut(place.clone()).unwrap_or_default();
            let Received { bytes, has_more } = connection.stream.read(buffer)?;
            received = place.start..place.start + bytes;
            self.bytes_in += bytes as u64;
            connection.is_readable = has_more || (bytes > 0 && connection.has_ended);
        }
        let has_received = !received.is_empty();
        if let Some(input) = connection.input.take() {
            self.run_input(index, connection, input, received);
        } else if has_received {
            self.run_received(index, connection, received);
        } else {
            self.after_running(index, connection, Stop::NeedsMore);
        }
        if has_received {
            let client = &connection.session.client;
            let at = self.now.saturating_duration_since(client.connected).as_millis();
            client.last_request_millis.store(at as u64, Ordering::Relaxed);
            connection.session.show_command();
        }
        Ok(())
    }

    /// Runs the requests of a connection that already has some, and those in a part of the read buffer.
    fn run_input(
        &mut self,
        index: usize,
        connection: &mut Connection,
        mut input: Box<Input>,
        received: Range<usize>,
    ) {
        let Input { bytes, parser } = &mut *input;
        bytes.extend_from_slice(self.read_buffer.get(received).unwrap_or_default());
        // The requests of a group are in one buffer.
        self.run_groups();
        let (used, stop) = self.run_all(index, connection, (bytes, 0), parser);
        let (used, stop) = match self.run_groups_in(bytes, (index, connection)) {
            Some(back) => {
                *parser = RequestParser::new();
                back
            }
            None => (used, stop),
        };
        if used < input.bytes.len() {
            input.bytes.drain(..used);
            connection.input = Some(input);
        }
        self.after_running(index, connection, stop);
    }

    /// Runs the requests in a part of the read buffer.
    fn run_received(&mut self, index: usize, connection: &mut Connection, received: Range<usize>) {
        // Taken out of the worker while commands run.
        let buffer = std::mem::take(&mut self.read_buffer);
        let mut parser = std::mem::take(&mut self.parser);
        let all = buffer.get(..received.end).unwrap_or_default();
        let (used, stop) = self.run_all(index, connection, (all, received.start), &mut parser);
        let rest = all.get(used..).unwrap_or_default();
        if rest.is_empty() {
            self.parser = parser;
        } else {
            connection.input = Some(Box::new(Input { bytes: rest.to_vec(), parser }));
        }
        self.read_buffer = buffer;
        if self.reads.is_empty() && self.writes.is_empty() {
            self.grouped_bytes = 0;
        } else if self.has_grouped(index) {
            self.grouped_bytes = received.end;
        }
        self.after_running(index, connection, stop);
    }

    /// Queues the connection again if it has more to do.
    pub(super) fn after_running(&mut self, index: usize, connection: &mut Connection, stop: Stop) {
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

    /// Runs the commands in a buffer from a position on, or adds them to groups. Returns the position up to
    /// which the connection's requests are consumed.
    fn run_all(
        &mut self,
        index: usize,
        connection: &mut Connection,
        (buffer, from): (&[u8], usize),
        parser: &mut RequestParser,
    ) -> (usize, Stop) {
        self.work.pause();
        let limits = &self.shared.config.limits;
        let (after_auth, before_auth) = (limits.request(), limits.request_before_auth());
        let mut used = from;
        for _ in 0..COMMANDS {
            let session = &connection.session;
            let limits = if session.is_authenticated { &after_auth } else { &before_auth };
            let rest = buffer.get(used..).unwrap_or_default();
            let parsed = parser.parse(rest, limits);
            if let Ok(Parsed::Incomplete) = parsed {
                return (used, Stop::NeedsMore);
            }
            if let Ok(Parsed::Complete(len)) = parsed
                && let Some(joining) = self.joining(connection, parser, rest, len)
            {
                let place = Span::of_range(used..used + len);
                let request = place.map(|place| (place, parser.arguments(rest)));
                let back = request.and_then(|(place, arguments)| {
                    let request = Request { connection: index, place, arguments };
                    self.join(&request, &joining, (buffer, connection))
                });
                parser.reset();
                if let Some(back) = back {
                    return back;
                }
                used += len;
            } else {
                // The connection's commands in a group come first.
                if self.has_grouped(index)
                    && let Some(back) = self.run_groups_in(buffer, (index, connection))
                {
                    parser.reset();
                    return back;
                }
                match self.run_alone(index, connection, (buffer, used), parsed, parser) {
                    (position, None) => used = position,
                    (position, Some(stop)) => return (position, stop),
                }
            }
            if self.serving.1 > REPLY_BYTES {
                return (used, Stop::Turn);
            }
        }
        (used, if used < buffer.len() { Stop::Turn } else { Stop::NeedsMore })
    }

    /// Runs the request at a position, which was parsed. Returns the position after it, and why the connection
    /// stops.
    fn run_alone(
        &mut self,
        index: usize,
        connection: &mut Connection,
        (buffer, used): (&[u8], usize),
        parsed: Result<Parsed, ProtocolError>,
        parser: &mut RequestParser,
    ) -> (usize, Option<Stop>) {
        let start = self.out.len();
        let len = match parsed {
            Ok(Parsed::Incomplete) => return (used, Some(Stop::NeedsMore)),
            Ok(Parsed::Complete(len)) => len,
            Err(ProtocolError(text)) => {
                let line = format!("-ERR Protocol error: {text}\r\n");
                self.out.extend_from_slice(line.as_bytes());
                self.add_reply(index, start..self.out.len(), false);
                // Another connection uses it next.
                parser.reset();
                return (buffer.len(), Some(Stop::Session(Next::Close)));
            }
        };
        let arguments = parser.arguments(buffer.get(used..).unwrap_or_default());
        let session = &mut connection.session;
        let mut depends_on_sync = false;
        if !arguments.is_empty() {
            let (shared, out) = (&self.shared, &mut self.out);
            depends_on_sync = run_request(shared, session, arguments, out, &mut self.work);
        }
        parser.reset();
        let next = std::mem::replace(&mut session.next, Next::Continue);
        if next == Next::Retry {
            return (used, Some(Stop::Session(next)));
        }
        let used = used + len;
        if let Next::PauseUntil(_) = next {
            let reply = self.out.split_off(start);
            connection.paused_reply = Some(reply.into());
        }
        self.add_reply(index, start..self.out.len(), depends_on_sync);
        if next != Next::Continue {
            return (used, Some(Stop::Session(next)));
        }
        if connection.waiting() + self.serving.1 > self.shared.config.limits.output_bytes {
            self.shared.counts.slow_clients.fetch_add(1, Ordering::Relaxed);
            self.drop_replies(index);
            return (buffer.len(), Some(Stop::Session(Next::Close)));
        }
        (used, None)
    }
}
