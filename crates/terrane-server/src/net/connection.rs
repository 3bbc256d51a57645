//! A connection: its socket, its session, and buffers that exist only while they are needed.

use std::io;
use std::time::Instant;

use super::stream::Stream;
use super::tls::{Flushed, UNSENT_BYTES};
use crate::protocol::RequestParser;
use crate::state::helpers::Pending;
use crate::state::session::Session;

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) session: Session,
    /// Bytes that were received but not yet processed.
    pub(super) input: Option<Box<Input>>,
    /// Replies that the client has not read.
    output: Option<Box<Output>>,
    /// Whether the socket may have more to read.
    pub(super) is_readable: bool,
    /// Whether the client has ended its side. No event follows then once everything was read.
    pub(super) has_ended: bool,
    /// Whether complete requests may wait in the input for their turn.
    pub(super) is_behind: bool,
    /// Whether the connection is in the list of those to serve.
    pub(super) is_queued: bool,
    /// Whether the connection is in the list of subscribers.
    pub(super) is_subscriber: bool,
    /// The connection is closed once its replies have been sent.
    pub(super) is_closing: bool,
    /// Requests are processed again from this time on.
    pub(super) paused_until: Option<Instant>,
    /// The reply that is sent then.
    pub(super) paused_reply: Option<Box<[u8]>>,
    /// The bytes of this connection in the count of all buffers.
    pub(super) counted: usize,
}

/// Bytes that were received but not yet processed.
#[derive(Debug, Default)]
pub(super) struct Input {
    pub(super) bytes: Vec<u8>,
    /// The state of the parser within the first request.
    pub(super) parser: RequestParser,
}

/// Replies that the client has not read.
#[derive(Debug)]
struct Output {
    bytes: Vec<u8>,
    sent: usize,
    /// When the client last read something.
    progress: Instant,
}

impl Connection {
    pub(super) fn new(stream: Stream, session: Session) -> Self {
        Self {
            stream,
            session,
            input: None,
            output: None,
            is_readable: false,
            has_ended: false,
            is_behind: false,
            is_queued: false,
            is_subscriber: false,
            is_closing: false,
            paused_until: None,
            paused_reply: None,
            counted: 0,
        }
    }

    /// Returns whether the connection processes no requests at present.
    pub(super) fn is_paused(&self) -> bool {
        self.paused_until.is_some() || self.session.pending.is_some()
    }

    /// Returns whether the client has left and its pending command must therefore be cancelled.
    pub(super) fn has_abandoned(&self) -> bool {
        self.has_ended && self.session.pending.as_ref().is_some_and(Pending::ends_with_client)
    }

    /// Returns whether a request that has arrived is answered later: by a thread, or after a retry.
    pub(super) fn awaits_reply(&self) -> bool {
        let is_tried_again = self.paused_until.is_some() && self.is_behind;
        let pending = self.session.pending.as_ref();
        is_tried_again || pending.is_some_and(|pending| !pending.ends_with_client())
    }

    /// Returns whether something waits for the client to read: replies, or a part of the handshake.
    pub(super) fn has_unsent(&self) -> bool {
        self.output.is_some() || self.stream.is_blocked()
    }

    /// Returns the bytes of unsent replies.
    pub(super) fn waiting(&self) -> usize {
        self.output.as_ref().map_or(0, |output| output.bytes.len() - output.sent)
    }

    /// Returns the time since which the client has read no replies; `None` if no replies wait.
    pub(super) fn stuck_since(&self) -> Option<Instant> {
        self.output.as_ref().map(|output| output.progress)
    }

    /// Returns the bytes of the buffers.
    pub(super) fn memory(&self) -> usize {
        let input =
            self.input.as_ref().map_or(0, |input| input.bytes.capacity() + input.parser.memory());
        let output = self.output.as_ref().map_or(0, |output| output.bytes.capacity());
        let encrypted = if self.stream.is_blocked() { UNSENT_BYTES } else { 0 };
        input + output + encrypted + self.session.memory()
    }

    /// Sends replies, and keeps the part that the socket does not accept.
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if let Some(output) = &mut self.output {
            output.bytes.extend_from_slice(bytes);
            return Ok(());
        }
        while !bytes.is_empty() {
            match self.stream.write(bytes)? {
                Some(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                None => break,
            }
        }
        // The end of the last reply may still wait in encrypted form.
        if !bytes.is_empty() || self.stream.is_blocked() {
            let (bytes, progress) = (bytes.to_vec(), Instant::now());
            self.output = Some(Box::new(Output { bytes, sent: 0, progress }));
        }
        Ok(())
    }

    /// Sends pending replies, as far as the socket accepts them.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Flushed { bytes: flushed, is_done } = self.stream.flush()?;
        let Some(output) = &mut self.output else { return Ok(()) };
        if flushed > 0 {
            output.progress = Instant::now();
        }
        if !is_done {
            return Ok(());
        }
        loop {
            let rest = output.bytes.get(output.sent..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            match self.stream.write(rest)? {
                Some(sent) => {
                    output.sent += sent;
                    output.progress = Instant::now();
                }
                None => {
                    // Free the part that was sent once it is most of the buffer.
                    if output.sent > output.bytes.len() / 2 {
                        output.bytes.drain(..output.sent);
                        output.bytes.shrink_to_fit();
                        output.sent = 0;
                    }
                    return Ok(());
                }
            }
        }
        if self.stream.is_blocked() {
            (output.bytes, output.sent) = (Vec::new(), 0);
        } else {
            self.output = None;
        }
        Ok(())
    }
}
