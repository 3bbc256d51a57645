//! The waits of connections: for replies and messages of other threads, and for the end of a pause.

use std::time::Instant;

use super::{Replies, Worker};
use crate::state::helpers::Pending;

impl Worker {
    /// Takes the replies that other threads have completed.
    pub(super) fn end_waits(&mut self) {
        for index in std::mem::take(&mut self.waiting) {
            let connection = self.connections.get_mut(index).and_then(Option::as_mut);
            let Some(connection) = connection else { continue };
            match connection.session.pending.as_ref().and_then(Pending::take) {
                None => self.waiting.push(index),
                Some(reply) => {
                    connection.session.pending = None;
                    connection.paused_reply = Some(reply.into());
                    self.enqueue(index);
                }
            }
        }
    }

    /// Ends the pauses that are over.
    pub(super) fn end_pauses(&mut self) {
        let now = self.now;
        let (over, rest) = self.paused.drain(..).partition(|(until, _)| *until <= now);
        self.paused = rest;
        let over: Vec<(Instant, usize)> = over;
        for (_, index) in over {
            if let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) {
                connection.paused_until = None;
                self.enqueue(index);
            }
        }
    }

    /// Takes the messages of channels, and sends them with the replies of the iteration.
    pub(super) fn take_messages(&mut self) {
        let Self { connections, subscribers, shared, .. } = self;
        subscribers.retain(|index| {
            let connection = connections.get_mut(*index).and_then(Option::as_mut);
            let Some(connection) = connection else { return false };
            let Some(own) = &connection.session.subscriptions else {
                connection.is_subscriber = false;
                return false;
            };
            let messages = own.mailbox.take(&shared.buffered);
            if !messages.is_empty() && !connection.is_closing {
                let start = self.out.len();
                self.out.extend_from_slice(&messages);
                let end = self.out.len();
                self.replies.push(Replies { connection: *index, start, end });
            }
            true
        });
    }
}
