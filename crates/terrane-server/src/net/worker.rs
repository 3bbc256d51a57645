//! An event loop, which serves its connections.
//!
//! An iteration waits for events, then serves each ready connection: it reads, runs the commands that have
//! arrived or adds them to a group (`commands/groups.rs`), and appends the replies to the buffer of the iteration.
//! Then it runs the groups, makes the writes of all connections durable with one sync, if the durability demands
//! one, and sends the replies.
//!
//! 1. A reply is sent once its write, and every write that it may show, has the server's durability. If the
//!    sync fails, these replies become errors.
//! 2. A connection runs a bounded number of commands per iteration, so that the others do not wait for it.
//! 3. A connection without an incomplete request and without waiting replies has no buffers.
//! 4. The commands of a connection run in their order: a connection has commands in at most one group, and they
//!    run before a command of another kind.

mod iteration;
mod limits;
mod serve;
mod waits;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::{Events, Poll, Token, Waker};

use super::connection::Connection;
use super::stream::Stream;
use crate::call::shared::Shared;
use crate::commands::{Group, Work};
use crate::protocol::RequestParser;
use crate::state::clients::Client;
use crate::state::session::Session;

const WAKE: Token = Token(usize::MAX);

/// The bytes that a connection reads per iteration.
const READ_BYTES: usize = 64 << 10;

/// The replies of an iteration are sent early when they take this many bytes.
const OUT_BYTES: usize = 4 << 20;

/// How often limits are checked and counts reported.
const TICK: Duration = Duration::from_millis(500);

/// How long clients may take to read their last replies when the server ends.
const ENDING: Duration = Duration::from_secs(2);

/// Hands connections to a worker.
#[derive(Debug)]
pub(crate) struct WorkerHandle {
    sender: Sender<(Stream, Arc<Client>)>,
    /// The number of connections of the worker.
    pub(crate) connections: Arc<AtomicUsize>,
}

impl WorkerHandle {
    /// Hands over a connection. The worker closes it if it has ended.
    pub(crate) fn hand_over(&self, shared: &Shared, stream: Stream, client: Arc<Client>) {
        let worker = client.worker;
        self.connections.fetch_add(1, Ordering::Relaxed);
        if self.sender.send((stream, client)).is_ok() {
            shared.wake(worker);
        }
    }
}

/// An event loop.
#[derive(Debug)]
pub(crate) struct Worker {
    index: usize,
    shared: Arc<Shared>,
    poll: Poll,
    receiver: Receiver<(Stream, Arc<Client>)>,
    count: Arc<AtomicUsize>,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// The connections to serve in the next iteration.
    queue: Vec<usize>,
    paused: Vec<(Instant, usize)>,
    /// The connections whose replies other threads write.
    waiting: Vec<usize>,
    /// The connections that subscribe to channels.
    subscribers: Vec<usize>,
    read_buffer: Box<[u8]>,
    /// The bytes at the start of `read_buffer` that hold the requests of groups.
    grouped_bytes: usize,
    /// The group of reads.
    reads: Group,
    /// The group of writes.
    writes: Group,
    /// The connection that is served, and the bytes of its replies.
    serving: (usize, usize),
    /// The parser of connections without an incomplete request.
    parser: RequestParser,
    out: Vec<u8>,
    /// The replies of the iteration by connection.
    replies: Vec<Replies>,
    /// The ranges of `out` with replies that depend on writes that are not durable yet.
    unsynced: Vec<(usize, usize)>,
    work: Work,
    bytes_in: u64,
    bytes_out: u64,
    now: Instant,
    next_tick: Instant,
}

/// The replies of a connection in an iteration.
#[derive(Debug)]
struct Replies {
    connection: usize,
    start: usize,
    end: usize,
}

impl Worker {
    /// Creates a worker without the shared state, the handle that passes it connections, and its waker.
    pub(crate) fn parts(index: usize) -> io::Result<(WorkerParts, WorkerHandle, Waker)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        let (sender, receiver) = channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let handle = WorkerHandle { sender, connections: Arc::clone(&connections) };
        Ok((WorkerParts { index, poll, receiver, count: connections }, handle, waker))
    }

    /// Serves connections until the server ends.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        let mut ending: Option<Instant> = None;
        loop {
            let timeout = self.timeout(ending.is_some());
            if let Err(error) = self.poll.poll(&mut events, Some(timeout))
                && error.kind() != io::ErrorKind::Interrupted
            {
                // The next call would fail as well; without events, nothing can be served.
                self.shared.end("the system reports no more requests");
                break;
            }
            self.now = Instant::now();
            for event in &events {
                match event.token() {
                    WAKE => self.on_wake(),
                    Token(index) => self.on_event(index, event),
                }
            }
            self.serve_queue();
            self.end_pauses();
            if self.now >= self.next_tick {
                self.tick();
            }
            if self.shared.is_ending() {
                let deadline = *ending.get_or_insert_with(|| self.begin_ending());
                if self.is_idle() || self.now >= deadline {
                    break;
                }
            }
        }
        self.work.report(&self.shared);
        for index in 0..self.connections.len() {
            self.close(index);
        }
    }

    fn timeout(&self, is_ending: bool) -> Duration {
        if !self.queue.is_empty() {
            return Duration::ZERO;
        }
        let next = self.paused.iter().map(|(until, _)| *until).min();
        let next = next.map_or(self.next_tick, |pause| pause.min(self.next_tick));
        let timeout = next.saturating_duration_since(Instant::now());
        if is_ending { timeout.min(Duration::from_millis(10)) } else { timeout }
    }

    fn on_wake(&mut self) {
        while let Ok((stream, client)) = self.receiver.try_recv() {
            self.add(stream, client);
        }
        self.end_waits();
        self.take_messages();
        let is_killed = |connection: &Option<Connection>| {
            connection.as_ref().is_some_and(|connection| {
                connection.session.client.is_killed.load(Ordering::Relaxed)
            })
        };
        for index in 0..self.connections.len() {
            if self.connections.get(index).is_some_and(is_killed) {
                self.close(index);
            }
        }
    }

    fn add(&mut self, mut stream: Stream, client: Arc<Client>) {
        let index = self.free.pop().unwrap_or(self.connections.len());
        if stream.register(self.poll.registry(), Token(index)).is_err() {
            self.shared.clients.remove(client.id);
            self.count.fetch_sub(1, Ordering::Relaxed);
            self.free.push(index);
            return;
        }
        let session = Session::new(client, self.shared.config.users.is_empty());
        let connection = Some(Connection::new(stream, session));
        match self.connections.get_mut(index) {
            Some(slot) => *slot = connection,
            None => self.connections.push(connection),
        }
    }

    fn on_event(&mut self, index: usize, event: &Event) {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        let has_ended = event.is_read_closed() || event.is_error();
        connection.has_ended |= has_ended;
        if connection.has_abandoned() {
            self.close(index);
            return;
        }
        if event.is_writable() && connection.has_unsent() {
            let flushed = connection.flush();
            let is_done = connection.is_closing && !connection.has_unsent();
            if flushed.is_err() || is_done {
                self.close(index);
                return;
            }
            self.count_buffers(index);
        }
        if event.is_readable() || has_ended {
            self.enqueue(index);
        }
    }

    /// Serves a connection, which may have more to read, in the next iteration.
    fn enqueue(&mut self, index: usize) {
        if let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) {
            connection.is_readable = true;
            if !connection.is_queued {
                connection.is_queued = true;
                self.queue.push(index);
            }
        }
    }

    /// Serves the connections of the queue, and sends their replies.
    fn serve_queue(&mut self) {
        let mut queue = std::mem::take(&mut self.queue);
        for index in queue.drain(..) {
            self.serve(index);
            if self.out.len() > OUT_BYTES {
                self.send_replies();
            }
        }
        self.run_groups();
        self.send_replies();
        // The list's memory is reused.
        if self.queue.is_empty() {
            self.queue = queue;
        }
    }

    /// Makes the writes of the iteration durable, and sends its replies.
    fn send_replies(&mut self) {
        if self.replies.is_empty() && !self.shared.durable.has_unsynced(self.index) {
            return;
        }
        let synced = self.shared.sync(self.index);
        if let Err(error) = synced {
            self.replace_unsynced(&error);
        }
        let out = std::mem::take(&mut self.out);
        for Replies { connection, start, end } in std::mem::take(&mut self.replies) {
            let bytes = out.get(start..end).unwrap_or_default();
            self.bytes_out += bytes.len() as u64;
            self.send(connection, bytes);
        }
        self.out = out;
        self.out.clear();
        self.out.shrink_to(OUT_BYTES);
        self.unsynced.clear();
    }

    fn send(&mut self, index: usize, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        let is_sent = connection.send(bytes).is_ok();
        let is_done = connection.is_closing && !connection.has_unsent();
        if !is_sent || is_done {
            self.close(index);
        } else {
            self.count_buffers(index);
        }
    }

    /// Replaces replies by an error if they depend on writes that did not become durable.
    #[cold]
    fn replace_unsynced(&mut self, error: &terrane::Error) {
        let text = error.to_string().replace(['\r', '\n'], " ");
        let line = format!(
            "-MISCONF data written or read may be lost, because it could not be synced: {text}\r\n"
        );
        let out = std::mem::take(&mut self.out);
        let mut unsynced = self.unsynced.drain(..).peekable();
        for replies in &mut self.replies {
            let (mut from, start) = (replies.start, self.out.len());
            while let Some((begin, end)) = unsynced.next_if(|(begin, _)| *begin < replies.end) {
                self.out.extend_from_slice(out.get(from..begin).unwrap_or_default());
                self.out.extend_from_slice(line.as_bytes());
                from = end;
            }
            self.out.extend_from_slice(out.get(from..replies.end).unwrap_or_default());
            (replies.start, replies.end) = (start, self.out.len());
        }
    }

    /// Closes a connection.
    fn close(&mut self, index: usize) {
        let Some(mut connection) = self.connections.get_mut(index).and_then(Option::take) else {
            return;
        };
        if connection.stream.is_handshaking() {
            self.shared.counts.failed_handshakes.fetch_add(1, Ordering::Relaxed);
        }
        connection.stream.close();
        connection.session.unwatch(&self.shared.locks);
        connection.session.unsubscribe(&self.shared.channels, &self.shared.buffered);
        self.shared.clients.remove(connection.session.client.id);
        self.shared.buffered.fetch_sub(connection.counted, Ordering::Relaxed);
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.paused.retain(|(_, paused)| *paused != index);
        self.waiting.retain(|waiting| *waiting != index);
        self.subscribers.retain(|subscriber| *subscriber != index);
        self.free.push(index);
    }

    /// Begins to end: every request that has arrived is served. Returns when to give up.
    fn begin_ending(&mut self) -> Instant {
        for index in 0..self.connections.len() {
            self.enqueue(index);
        }
        self.now + ENDING
    }

    /// Returns whether nothing is left to do.
    fn is_idle(&self) -> bool {
        let is_busy =
            |connection: &Connection| connection.has_unsent() || connection.awaits_reply();
        self.queue.is_empty() && !self.connections.iter().flatten().any(is_busy)
    }
}

/// A worker before it has the shared state.
#[derive(Debug)]
pub(crate) struct WorkerParts {
    index: usize,
    poll: Poll,
    receiver: Receiver<(Stream, Arc<Client>)>,
    count: Arc<AtomicUsize>,
}

impl WorkerParts {
    pub(crate) fn with(self, shared: &Arc<Shared>) -> Worker {
        let Self { index, poll, receiver, count } = self;
        let now = Instant::now();
        Worker {
            index,
            shared: Arc::clone(shared),
            poll,
            receiver,
            count,
            connections: Vec::new(),
            free: Vec::new(),
            queue: Vec::new(),
            paused: Vec::new(),
            waiting: Vec::new(),
            subscribers: Vec::new(),
            read_buffer: vec![0; 2 * READ_BYTES].into(),
            grouped_bytes: 0,
            reads: Group::default(),
            writes: Group::default(),
            serving: (0, 0),
            parser: RequestParser::new(),
            out: Vec::new(),
            replies: Vec::new(),
            unsynced: Vec::new(),
            work: Work::default(),
            bytes_in: 0,
            bytes_out: 0,
            now,
            next_tick: now + TICK,
        }
    }
}
