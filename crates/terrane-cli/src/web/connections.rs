//! The open connections of a server.
//!
//! Each has a thread, so their number is limited. Every user of the machine can connect, and connections that ask for
//! nothing must not keep others out: once there are too many, the one that has waited the longest gives way.

use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most connections at a time.
const CONNECTIONS_MAX: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The number of the next connection.
    next: u64,
    open: usize,
    /// Those without a complete request, the oldest first.
    waiting: VecDeque<(u64, TcpStream)>,
}

/// A connection, which is open until this is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    all: Arc<Connections>,
    number: u64,
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new connection. Returns `None` if it must be closed, because all others have sent requests.
    pub(super) fn begin(self: &Arc<Self>, stream: &TcpStream) -> Option<Connection> {
        let handle = stream.try_clone().ok()?;
        let mut state = self.lock();
        if state.open >= CONNECTIONS_MAX {
            let (_, oldest) = state.waiting.pop_front()?;
            // Ends the read of its thread. The client may have gone already.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let number = state.next;
        state.next += 1;
        state.open += 1;
        state.waiting.push_back((number, handle));
        Some(Connection { all: Arc::clone(self), number })
    }
}

impl Connection {
    /// Notes that the client has sent its request.
    pub(super) fn has_asked(&self) {
        self.all.lock().waiting.retain(|(number, _)| *number != self.number);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.has_asked();
        self.all.lock().open -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_connection_without_a_request_gives_way_and_others_stay() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let all = Arc::new(Connections::default());
        let (asking, stream) = connect();
        let first = all.begin(&stream).unwrap();
        first.has_asked();
        let idle: Vec<_> = (1..CONNECTIONS_MAX)
            .map(|_| {
                let (client, stream) = connect();
                (client, all.begin(&stream).unwrap(), stream)
            })
            .collect();
        // The oldest one that has asked for nothing is closed.
        let (_newcomer, stream) = connect();
        let new = all.begin(&stream).unwrap();
        let mut oldest = &idle[0].0;
        assert_eq!(oldest.read(&mut [0; 1]).unwrap(), 0);
        asking.set_nonblocking(true).unwrap();
        assert!((&asking).read(&mut [0; 1]).is_err(), "it is still open");
        // If all have asked, the newcomer is refused.
        new.has_asked();
        idle.iter().for_each(|(_, connection, _)| connection.has_asked());
        let (_refused, stream) = connect();
        assert!(all.begin(&stream).is_none());
        drop((first, idle, new));
        let state = all.lock();
        assert_eq!((state.open, state.waiting.len()), (0, 0));
    }
}
