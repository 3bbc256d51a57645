//! Channels: messages from clients to the clients that subscribe.
//!
//! A subscriber has a mailbox. A publisher appends the message, in the protocol of the subscriber, to the
//! mailbox of each subscriber, and wakes their event loops, which send the contents of the mailboxes.
//!
//! 1. The bytes in mailboxes count among the buffers of all connections. A client is disconnected if its
//!    mailbox exceeds the bytes that it may leave unread, or if it receives a message while all buffers
//!    exceed their limit.
//! 2. No message of a channel arrives after the confirmation that its client has unsubscribed, because the
//!    mailbox is emptied before the confirmation.
//! 3. No deadlock: the table is locked before a mailbox.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::base::glob::matches;
use crate::protocol::{Protocol, Reply};
use crate::state::clients::Client;

/// The topic of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    Channel,
    Pattern,
}

/// The subscribers of all channels.
#[derive(Debug, Default)]
pub(crate) struct Channels(RwLock<Table>);

#[derive(Debug, Default)]
struct Table {
    channels: Subscribers,
    patterns: Subscribers,
}

type Subscribers = BTreeMap<Box<[u8]>, Vec<Arc<Mailbox>>>;

impl Table {
    fn of(&mut self, topic: Topic) -> &mut Subscribers {
        match topic {
            Topic::Channel => &mut self.channels,
            Topic::Pattern => &mut self.patterns,
        }
    }
}

/// The messages that wait for an event loop to send them.
#[derive(Debug)]
pub(crate) struct Mailbox {
    client: Arc<Client>,
    messages: Mutex<Vec<u8>>,
}

impl Mailbox {
    fn add(&self, parts: &[&[u8]], limits: &MailLimits<'_>) {
        let is_resp3 = self.client.is_resp3.load(Ordering::Relaxed);
        let protocol = if is_resp3 { Protocol::Resp3 } else { Protocol::Resp2 };
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let before = messages.len();
        let mut reply = Reply::new(std::mem::take(&mut *messages), protocol);
        reply.push(parts.len());
        parts.iter().for_each(|part| reply.bulk(part));
        *messages = reply.into_buffer();
        let added = messages.len() - before;
        let all = limits.buffered.fetch_add(added, Ordering::Relaxed) + added;
        if messages.len() > limits.output_bytes || all > limits.buffer_bytes {
            limits.buffered.fetch_sub(messages.len(), Ordering::Relaxed);
            *messages = Vec::new();
            self.client.is_killed.store(true, Ordering::Relaxed);
        }
    }

    /// Takes the messages.
    pub(crate) fn take(&self, buffered: &AtomicUsize) -> Vec<u8> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        buffered.fetch_sub(messages.len(), Ordering::Relaxed);
        std::mem::take(&mut *messages)
    }
}

/// Limits of mailboxes.
#[derive(Debug)]
pub(crate) struct MailLimits<'a> {
    /// The bytes in the buffers of all connections.
    pub(crate) buffered: &'a AtomicUsize,
    pub(crate) buffer_bytes: usize,
    pub(crate) output_bytes: usize,
}

/// The subscriptions of a client.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    pub(crate) mailbox: Arc<Mailbox>,
    channels: BTreeSet<Box<[u8]>>,
    patterns: BTreeSet<Box<[u8]>>,
    bytes: usize,
}

/// The memory of a subscription besides its name.
const SUBSCRIPTION_BYTES: usize = 128;

impl Subscriptions {
    pub(crate) fn new(client: &Arc<Client>) -> Self {
        let mailbox = Mailbox { client: Arc::clone(client), messages: Mutex::default() };
        let (channels, patterns) = (BTreeSet::new(), BTreeSet::new());
        Self { mailbox: Arc::new(mailbox), channels, patterns, bytes: 0 }
    }

    fn of(&mut self, topic: Topic) -> &mut BTreeSet<Box<[u8]>> {
        match topic {
            Topic::Channel => &mut self.channels,
            Topic::Pattern => &mut self.patterns,
        }
    }

    /// Returns the number of channels and patterns.
    pub(crate) fn len(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    /// Returns the bytes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.bytes
    }

    /// Returns the names of all channels or patterns.
    pub(crate) fn names(&mut self, topic: Topic) -> Vec<Box<[u8]>> {
        self.of(topic).iter().cloned().collect()
    }

    fn report(&self) {
        let client = &self.mailbox.client;
        client.channels.store(self.channels.len(), Ordering::Relaxed);
        client.patterns.store(self.patterns.len(), Ordering::Relaxed);
    }
}

impl Channels {
    /// Subscribes to a channel or the channels that match a pattern.
    pub(crate) fn subscribe(&self, own: &mut Subscriptions, topic: Topic, name: &[u8]) {
        if own.of(topic).insert(name.into()) {
            own.bytes += name.len() + SUBSCRIPTION_BYTES;
            own.report();
            let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
            let subscribers = table.of(topic).entry(name.into()).or_default();
            subscribers.push(Arc::clone(&own.mailbox));
        }
    }

    /// Ends a subscription.
    pub(crate) fn unsubscribe(&self, own: &mut Subscriptions, topic: Topic, name: &[u8]) {
        if own.of(topic).remove(name) {
            own.bytes -= name.len() + SUBSCRIPTION_BYTES;
            own.report();
            let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
            let subscribers = table.of(topic);
            if let Some(of_name) = subscribers.get_mut(name) {
                of_name.retain(|other| !Arc::ptr_eq(other, &own.mailbox));
                if of_name.is_empty() {
                    subscribers.remove(name);
                }
            }
        }
    }

    /// Ends all subscriptions of a client, and drops its messages.
    pub(crate) fn unsubscribe_all(&self, mut own: Subscriptions, buffered: &AtomicUsize) {
        for topic in [Topic::Channel, Topic::Pattern] {
            for name in own.names(topic) {
                self.unsubscribe(&mut own, topic, &name);
            }
        }
        drop(own.mailbox.take(buffered));
    }

    /// Sends a message to the subscribers of a channel. Returns how many there are, and their event loops.
    pub(crate) fn publish(
        &self,
        channel: &[u8],
        message: &[u8],
        limits: &MailLimits<'_>,
    ) -> (usize, BTreeSet<usize>) {
        let (mut count, mut workers) = (0, BTreeSet::new());
        let mut send = |mailbox: &Mailbox, parts: &[&[u8]]| {
            mailbox.add(parts, limits);
            workers.insert(mailbox.client.worker);
            count += 1;
        };
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for mailbox in table.channels.get(channel).into_iter().flatten() {
            send(mailbox, &[b"message", channel, message]);
        }
        for (pattern, mailboxes) in &table.patterns {
            if matches(pattern, channel) {
                let parts = [b"pmessage", &**pattern, channel, message];
                mailboxes.iter().for_each(|mailbox| send(mailbox, &parts));
            }
        }
        (count, workers)
    }

    /// Returns the channels that match a pattern.
    pub(crate) fn names(&self, pattern: Option<&[u8]>) -> Vec<Box<[u8]>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |name: &[u8]| pattern.is_none_or(|pattern| matches(pattern, name));
        table.channels.keys().filter(|name| is_meant(name)).cloned().collect()
    }

    /// Returns the number of subscribers of a channel by its name.
    pub(crate) fn subscribers(&self, channel: &[u8]) -> usize {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.channels.get(channel).map_or(0, Vec::len)
    }

    /// Returns the numbers of channels and of patterns.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        (table.channels.len(), table.patterns.len())
    }
}
