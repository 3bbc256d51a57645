//! The commands that run together, and the replies of an iteration.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::serve::Stop;
use super::{Replies, Worker};
use crate::commands::{Group, GroupKind, Joining, Ran, Request, note_slow_member};
use crate::net::connection::Connection;
use crate::protocol::RequestParser;
use crate::state::clients::Client;
use crate::state::session::Next;

/// A connection that is being served, and its number.
type Served<'c> = (usize, &'c Connection);

impl Worker {
    /// Returns how a request joins a group; `None` if it runs alone.
    #[inline]
    pub(super) fn joining(
        &mut self,
        connection: &mut Connection,
        parser: &RequestParser,
        bytes: &[u8],
        len: usize,
    ) -> Option<Joining> {
        if !Group::takes_request(len) || parser.is_inline() {
            return None;
        }
        let (arguments, work) = (parser.arguments(bytes), &mut self.work);
        Joining::of(&self.shared, &mut connection.session, arguments, work)
    }

    /// Returns whether a connection has commands in a group.
    #[inline]
    pub(super) fn has_grouped(&self, index: usize) -> bool {
        self.reads.has(index) || self.writes.has(index)
    }

    /// Adds a request of the connection that is being served to its group. Returns where the connection stops if
    /// earlier requests could not run; then the request is not added.
    #[inline]
    pub(super) fn join(
        &mut self,
        request: &Request<'_>,
        joining: &Joining,
        (buffer, connection): (&[u8], &Connection),
    ) -> Option<(usize, Stop)> {
        let served = (request.connection, connection);
        let (kind, other) = match joining.kind {
            GroupKind::Reads => (GroupKind::Reads, GroupKind::Writes),
            GroupKind::Writes => (GroupKind::Writes, GroupKind::Reads),
        };
        if self.group(other).has(request.connection)
            && let Some(back) = self.run_group(other, buffer, Some(served))
        {
            return Some(back);
        }
        if !self.group(kind).takes(request, joining)
            && let Some(back) = self.run_group(kind, buffer, Some(served))
        {
            return Some(back);
        }
        self.group(kind).add(request, joining);
        None
    }

    fn group(&mut self, kind: GroupKind) -> &mut Group {
        match kind {
            GroupKind::Reads => &mut self.reads,
            GroupKind::Writes => &mut self.writes,
        }
    }

    /// Runs the groups, whose requests are in the read buffer.
    pub(super) fn run_groups(&mut self) {
        if !self.reads.is_empty() || !self.writes.is_empty() {
            let buffer = std::mem::take(&mut self.read_buffer);
            self.run_group(GroupKind::Reads, &buffer, None);
            self.run_group(GroupKind::Writes, &buffer, None);
            self.read_buffer = buffer;
        }
        self.grouped_bytes = 0;
    }

    /// Runs the groups, whose requests are in a buffer. Returns where the connection that is being served
    /// stops if some of its requests could not run.
    pub(super) fn run_groups_in(
        &mut self,
        buffer: &[u8],
        served: Served<'_>,
    ) -> Option<(usize, Stop)> {
        let reads = self.run_group(GroupKind::Reads, buffer, Some(served));
        // A connection has commands in one group.
        self.run_group(GroupKind::Writes, buffer, Some(served)).or(reads)
    }

    fn run_group(
        &mut self,
        kind: GroupKind,
        buffer: &[u8],
        served: Option<Served<'_>>,
    ) -> Option<(usize, Stop)> {
        if self.group(kind).is_empty() {
            return None;
        }
        let mut group = std::mem::take(self.group(kind));
        let mut begin = self.out.len();
        let (shared, out) = (&self.shared, &mut self.out);
        let ran = group.run(kind, (shared, self.index), buffer, out, &mut self.work);
        for (connection, end) in group.replies() {
            self.add_reply(connection, begin..end, ran.depends_on_sync);
            begin = end;
        }
        self.note_slow_members(&group, &ran, buffer, served);
        let stop = if ran.is_stalled { Stop::Session(Next::Retry) } else { Stop::Turn };
        let mut stopped = None;
        for (connection, requests) in group.unanswered() {
            match served {
                Some((index, _)) if index == connection => stopped = Some((requests.start, stop)),
                _ => {
                    let requests = buffer.get(requests).unwrap_or_default();
                    self.return_requests(connection, requests, stop);
                }
            }
        }
        group.clear();
        *self.group(kind) = group;
        stopped
    }

    /// Puts requests that could not run back in front of the later input of their connection, which was
    /// served.
    #[cold]
    fn return_requests(&mut self, index: usize, requests: &[u8], stop: Stop) {
        let Some(mut connection) = self.connections.get_mut(index).and_then(Option::take) else {
            return;
        };
        let mut input = connection.input.take().unwrap_or_default();
        input.bytes.splice(..0, requests.iter().copied());
        input.parser = RequestParser::new();
        connection.input = Some(input);
        if !connection.is_closing {
            self.after_running(index, &mut connection, stop);
        }
        self.put_back(index, connection);
        self.count_buffers(index);
    }

    #[inline]
    fn note_slow_members(
        &self,
        group: &Group,
        ran: &Ran,
        buffer: &[u8],
        served: Option<Served<'_>>,
    ) {
        let micros = self.shared.settings.slow_micros.load(Ordering::Relaxed);
        let Ok(micros) = u64::try_from(micros) else { return };
        for (index, request, took) in group.slow(ran, Duration::from_micros(micros)) {
            let connection = match served {
                Some((served, connection)) if served == index => Some(connection),
                _ => self.connections.get(index).and_then(Option::as_ref),
            };
            if let Some(connection) = connection {
                let client: &Arc<Client> = &connection.session.client;
                note_slow_member(&self.shared, client, request.of(buffer), took);
            }
        }
    }

    /// Adds a part of `out` to the replies of a connection.
    #[inline]
    pub(super) fn add_reply(&mut self, index: usize, place: Range<usize>, depends_on_sync: bool) {
        let Range { start, end } = place;
        // A client may have turned replies off.
        if start == end {
            return;
        }
        if depends_on_sync {
            self.unsynced.push((start, end));
        }
        if self.serving.0 == index {
            self.serving.1 += end - start;
        }
        match self.replies.last_mut() {
            Some(last) if last.connection == index && last.end == start => last.end = end,
            _ => self.replies.push(Replies { connection: index, start, end }),
        }
    }

    /// Returns whether a connection has replies in this iteration.
    pub(super) fn has_replies(&self, index: usize) -> bool {
        self.replies.iter().any(|replies| replies.connection == index)
    }

    /// Drops the replies of a connection, which is closed.
    #[cold]
    pub(super) fn drop_replies(&mut self, index: usize) {
        let is_own = |replies: &Replies| replies.connection == index;
        let own: Vec<Range<usize>> =
            self.replies.iter().filter(|it| is_own(it)).map(|it| it.start..it.end).collect();
        self.replies.retain(|replies| !is_own(replies));
        self.unsynced.retain(|(begin, _)| !own.iter().any(|range| range.contains(begin)));
    }
}
