//! The state of a connection that commands see and change.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use terrane::Maintenance;

use crate::protocol::{OwnedArguments, Protocol};
use crate::state::channels::{Channels, Subscriptions};
use crate::state::clients::Client;
use crate::state::helpers::Pending;
use crate::state::users::User;
use crate::store::KeyLocks;

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Arc<Client>,
    pub(crate) protocol: Protocol,
    /// The number of the selected database.
    pub(crate) database: usize,
    /// The slot that the number selected when the command began; see `store/order.rs`.
    pub(crate) slot: usize,
    /// The user; `None` before a client has authenticated, and for every client if the server has no users.
    pub(crate) user: Option<Arc<User>>,
    pub(crate) is_authenticated: bool,
    /// The transaction that is being queued.
    pub(crate) queue: Option<Box<Queue>>,
    /// The keys that the client watches.
    pub(crate) watch: Option<Box<Watch>>,
    /// The channels that the client subscribes to.
    pub(crate) subscriptions: Option<Box<Subscriptions>>,
    /// The messages that the current transaction publishes when it commits.
    pub(crate) published: Vec<Published>,
    pub(crate) replies: ReplyMode,
    /// The last command, and the one that `CLIENT LIST` shows.
    pub(crate) command: &'static str,
    shown_command: &'static str,
    /// The reply that another thread writes.
    pub(crate) pending: Option<Pending>,
    /// Cancels the command, if it runs in its own thread.
    pub(crate) aside: Option<Maintenance>,
    /// What happens to the connection after the reply.
    pub(crate) next: Next,
}

/// A channel, and a message to its subscribers.
pub(crate) type Published = (Box<[u8]>, Box<[u8]>);

/// What happens after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next request.
    Continue,
    /// The next request, not before this time. The reply waits as well.
    PauseUntil(Instant),
    /// The next request, after the reply that another thread writes.
    Wait,
    /// The same request again, a little later.
    Retry,
    /// The connection is closed once the reply has been sent.
    Close,
}

/// Which replies a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    On,
    Off,
    /// None for the current command and the next one.
    SkipNext,
    /// None for the current command.
    Skip,
}

/// The commands between `MULTI` and `EXEC`.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) commands: Vec<OwnedArguments>,
    pub(crate) bytes: usize,
    /// A command was refused, so `EXEC` fails.
    pub(crate) is_broken: bool,
}

/// The watched keys; a change of one makes the next `EXEC` fail.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Whether each key had a value, by its database and the key.
    pub(crate) keys: HashMap<(usize, Box<[u8]>), bool>,
    pub(crate) bytes: usize,
    pub(crate) is_changed: Arc<AtomicBool>,
}

impl Session {
    /// Returns the state of a new connection.
    pub(crate) fn new(client: Arc<Client>, is_authenticated: bool) -> Self {
        Self {
            client,
            protocol: Protocol::Resp2,
            database: 0,
            slot: 0,
            user: None,
            is_authenticated,
            queue: None,
            watch: None,
            subscriptions: None,
            published: Vec::new(),
            replies: ReplyMode::On,
            command: "",
            shown_command: "",
            pending: None,
            aside: None,
            next: Next::Continue,
        }
    }

    /// Returns a session for a read-only command that runs in its own thread.
    pub(crate) fn aside(&self) -> Self {
        let mut session = Self::new(Arc::clone(&self.client), self.is_authenticated);
        session.protocol = self.protocol;
        session.database = self.database;
        session.slot = self.slot;
        session.user = self.user.clone();
        session
    }

    pub(crate) fn select(&mut self, database: usize) {
        self.database = database;
        self.client.database.store(database, Ordering::Relaxed);
    }

    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        self.client.is_resp3.store(protocol == Protocol::Resp3, Ordering::Relaxed);
    }

    /// Lets `CLIENT LIST` show the last command.
    #[inline]
    pub(crate) fn show_command(&mut self) {
        if !std::ptr::eq(self.command, self.shown_command) {
            self.shown_command = self.command;
            self.client.texts().last_command = self.command;
        }
    }

    /// Ends all watches.
    pub(crate) fn unwatch(&mut self, locks: &KeyLocks) {
        if let Some(watch) = self.watch.take() {
            for (database, key) in watch.keys.keys() {
                locks.unwatch(*database, key, &watch.is_changed);
            }
        }
    }

    /// Ends all subscriptions.
    pub(crate) fn unsubscribe(&mut self, channels: &Channels, buffered: &AtomicUsize) {
        if let Some(own) = self.subscriptions.take() {
            channels.unsubscribe_all(*own, buffered);
        }
    }

    /// Ends the transaction that is being queued.
    pub(crate) fn take_queue(&mut self) -> Option<Box<Queue>> {
        self.client.queued.store(-1, Ordering::Relaxed);
        self.queue.take()
    }

    /// Returns the bytes that the session keeps in memory.
    pub(crate) fn memory(&self) -> usize {
        let queued = self.queue.as_ref().map_or(0, |queue| queue.bytes);
        let subscribed = self.subscriptions.as_ref().map_or(0, |own| own.memory());
        queued + subscribed + self.watch.as_ref().map_or(0, |watch| watch.bytes)
    }
}
