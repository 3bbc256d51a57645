//! The limits that protect the server from its clients.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{TICK, Worker};
use crate::net::connection::Connection;

/// A connection with smaller buffers is not closed to reduce the memory of all.
const SMALL: usize = 64 << 10;

impl Worker {
    /// Counts the buffers of a connection in the total. Closes the connection if its replies have
    /// become too large, and closes the largest connections if the total has.
    pub(super) fn count_buffers(&mut self, index: usize) {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        let (before, now) = (connection.counted, connection.memory());
        if before == now {
            return;
        }
        connection.counted = now;
        let all = if now > before {
            self.shared.buffered.fetch_add(now - before, Ordering::Relaxed) + (now - before)
        } else {
            self.shared.buffered.fetch_sub(before - now, Ordering::Relaxed)
        };
        let limits = &self.shared.config.limits;
        let is_too_large = now > before && now > SMALL && all > limits.buffer_bytes;
        if connection.waiting() > limits.output_bytes {
            self.close_for_memory(index);
        } else if is_too_large {
            self.close_largest();
        }
    }

    /// Closes the largest connections until all buffers, those of other workers included, are within the
    /// limit. The connection that grows is often not the one that takes the memory.
    #[cold]
    fn close_largest(&mut self) {
        while self.shared.buffered.load(Ordering::Relaxed) > self.shared.config.limits.buffer_bytes
        {
            let counted =
                |connection: &Option<Connection>| connection.as_ref().map(|it| it.counted);
            let all = self.connections.iter().enumerate();
            let all = all.filter_map(|(index, connection)| Some((counted(connection)?, index)));
            let Some((_, index)) = all.max().filter(|(bytes, _)| *bytes > SMALL) else { break };
            self.close_for_memory(index);
        }
    }

    fn close_for_memory(&mut self, index: usize) {
        self.shared.counts.slow_clients.fetch_add(1, Ordering::Relaxed);
        self.close(index);
    }

    /// Closes idle and stuck connections, and reports counts.
    pub(super) fn tick(&mut self) {
        self.next_tick = self.now + TICK;
        self.work.report(&self.shared);
        let counts = &self.shared.counts;
        counts.bytes_in.fetch_add(std::mem::take(&mut self.bytes_in), Ordering::Relaxed);
        counts.bytes_out.fetch_add(std::mem::take(&mut self.bytes_out), Ordering::Relaxed);
        let now = self.now;
        let (idle, stuck) = (self.shared.idle(), self.shared.config.limits.slow_client);
        let is_idle = |connection: &Connection| {
            let waits = connection.is_paused() || connection.session.subscriptions.is_some();
            let idle = idle.filter(|_| !waits);
            idle.is_some_and(|idle| connection.session.client.idle(now) >= idle)
        };
        let is_stuck = |connection: &Connection| {
            let elapsed = |since: Instant| now.saturating_duration_since(since);
            connection.stuck_since().is_some_and(|since| elapsed(since) >= stuck)
        };
        let handshake = self.shared.config.limits.tls_handshake;
        let is_unready = |connection: &Connection| {
            let elapsed = now.saturating_duration_since(connection.session.client.connected);
            connection.stream.is_handshaking() && elapsed >= handshake
        };
        for index in 0..self.connections.len() {
            let Some(connection) = self.connections.get(index).and_then(Option::as_ref) else {
                continue;
            };
            let is_stuck = is_stuck(connection);
            if is_stuck {
                self.shared.counts.slow_clients.fetch_add(1, Ordering::Relaxed);
            }
            if is_stuck || is_idle(connection) || is_unready(connection) {
                self.close(index);
            }
        }
    }
}
