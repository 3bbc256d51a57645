//! Metrics and health over HTTP, on a port of their own.
//!
//! `GET /metrics` answers in the OpenMetrics text format, `GET /health` with 200 if the database accepts
//! writes, and 503 with the error if not. On an address that other hosts can reach, `/metrics` requires the
//! name and the password of a user who may use all keyspaces, unless the server has no users.
//!
//! | module | one line |
//! |---|---|
//! | `client` | a connection: its request and its response |
//! | `page` | the responses |
//!
//! One thread serves all connections as they become ready, so no client waits for another:
//!
//! 1. A connection ends after two seconds, whatever its client does.
//! 2. There are at most 64 connections. One more closes the oldest, which has had the most time.

mod client;
mod page;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use self::client::Client;
use crate::base::error::ServerError;
use crate::call::shared::Shared;

/// The time that a client has for its request and the answer.
const TIME: Duration = Duration::from_secs(2);

/// The number of connections, enough for scrapers and probes that arrive together.
const MAX_CLIENTS: usize = 64;

/// How often the thread checks whether the server ends.
const PAUSE: Duration = Duration::from_millis(100);

const LISTENER: Token = Token(usize::MAX);

/// Listens for scrapers.
#[derive(Debug)]
pub(crate) struct Metrics {
    listener: TcpListener,
    poll: Poll,
}

impl Metrics {
    pub(crate) fn listen(address: SocketAddr) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Listen { address: address.to_string(), source };
        let mut listener = TcpListener::bind(address).map_err(failed)?;
        let poll = Poll::new().map_err(failed)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE).map_err(failed)?;
        Ok(Self { listener, poll })
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Answers until the server ends.
    pub(crate) fn run(self, shared: &Arc<Shared>) {
        let is_local = self.address().is_some_and(|address| address.ip().is_loopback());
        let is_open = is_local || shared.config.users.is_empty();
        let Self { listener, mut poll } = self;
        let mut clients = Clients { open: VecDeque::new(), next: 0 };
        let mut events = Events::with_capacity(MAX_CLIENTS);
        while !shared.is_ending() {
            if poll.poll(&mut events, Some(PAUSE)).is_err() {
                // Interrupted, or out of memory: both may pass.
                std::thread::sleep(PAUSE);
            }
            for event in &events {
                if event.token() != LISTENER {
                    clients.advance(event.token(), shared, is_open);
                }
            }
            // After the clients that are ready, so that none of them is closed to make room.
            clients.accept(&listener, &poll, shared, is_open);
            clients.close_late(Instant::now());
        }
    }
}

/// The connections, the oldest first.
#[derive(Debug)]
struct Clients {
    open: VecDeque<(Token, Client)>,
    next: usize,
}

impl Clients {
    /// Accepts the pending connections.
    fn accept(&mut self, listener: &TcpListener, poll: &Poll, shared: &Shared, is_open: bool) {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    if let Ok(token) = self.add(stream, poll, shared) {
                        // Its request has usually arrived, and is answered before others take its place.
                        self.advance(token, shared, is_open);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A client that is already gone, or no more files, of which closed connections free some. The
                // next round tries again.
                Err(_) => return,
            }
        }
    }

    fn add(&mut self, mut stream: TcpStream, poll: &Poll, shared: &Shared) -> io::Result<Token> {
        if self.open.len() >= MAX_CLIENTS {
            self.open.pop_front();
            shared.counts.evicted_scrapers.fetch_add(1, Ordering::Relaxed);
        }
        let token = Token(self.next);
        // Wraps around before the token of the listener.
        self.next = (self.next + 1) % LISTENER.0;
        poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        self.open.push_back((token, Client::new(stream, Instant::now() + TIME)));
        Ok(token)
    }

    /// Continues with a connection that is ready.
    fn advance(&mut self, token: Token, shared: &Shared, is_open: bool) {
        let Some(index) = self.open.iter().position(|(other, _)| *other == token) else { return };
        let Some((_, client)) = self.open.get_mut(index) else { return };
        let advanced = client.advance(|request| page::respond(request, shared, is_open));
        // A misbehaving client gets no answer.
        if !matches!(advanced, Ok(false)) {
            self.open.remove(index);
        }
    }

    /// Closes the connections whose time is over, which are the oldest.
    fn close_late(&mut self, now: Instant) {
        while self.open.front().is_some_and(|(_, client)| client.deadline <= now) {
            self.open.pop_front();
        }
    }
}
