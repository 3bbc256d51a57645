//! Commands that run together.
//!
//! An iteration of an event loop receives requests from several connections and pipelines. It collects `GET`
//! in one group, and `SET` without options, `MSET` and the commands that add an integer in another. A group
//! of reads is one lookup of all its keys, so that their waits for memory overlap; a group of writes is one
//! such lookup, of the values that it adds to, and one engine write.
//!
//! 1. The replies and the stored data are the same as if the commands ran one by one in their
//!    order, because a group of writes holds the locks of all its keys, a command sees the values
//!    that earlier commands of its group set, and a command that fails changes nothing.
//! 2. A group is short, so that it delays no other connection: see the limits below.

mod write;

use std::ops::Range;
use std::time::{Duration, Instant};

use terrane::WriteBatch;

use super::admission::is_stalled;
use super::dispatch::{Work, check_user, note_slow};
use super::events;
use crate::call::catalogue::{CommandInfo, GROUPED, WRITE};
use crate::call::shared::Shared;
use crate::call::{CommandError, LookupCounts, integer};
use crate::protocol::{Arguments, Parsed, Protocol, Reply, RequestParser, Span};
use crate::state::clients::Client;
use crate::state::latency;
use crate::state::session::{ReplyMode, Session};
use crate::store::Store;

/// The most commands of a group.
const COMMANDS: usize = 64;

/// The number of lookups that overlap. Their values, which may be long, are in memory before the first of
/// them is sent.
const LOOKUPS: usize = 24;

/// The most keys of a group; because of `MSET`, it may have more keys than commands.
const KEYS: usize = 256;

/// The most request bytes of a group, so that its write takes no engine lock.
const BYTES: usize = 32 << 10;

/// A longer request runs alone, because grouping gains it nothing. So no key is longer than the engine
/// allows.
const REQUEST_BYTES: usize = 16 << 10;

/// A group of reads ends when its replies take this many bytes.
const REPLY_BYTES: usize = 1 << 20;

/// Which group a command joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupKind {
    Reads,
    Writes,
}

/// A request that may join a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The number of its connection.
    pub(crate) connection: usize,
    /// The position of the request in the buffer.
    pub(crate) place: Span,
    pub(crate) arguments: Arguments<'a>,
}

/// What a command of a group does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Get,
    /// Sets the arguments from the first on, which are keys and values alternately.
    Set,
    Add(i64),
}

/// A `SELECT` number, and the slot that it had when a request joined.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Database {
    number: usize,
    slot: usize,
}

impl Database {
    /// Returns whether `SWAPDB` has given the number another slot.
    fn is_swapped(self, shared: &Shared) -> bool {
        shared.databases.slot(self.number) != self.slot
    }
}

/// How a request joins a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Joining {
    pub(crate) kind: GroupKind,
    database: Database,
    protocol: Protocol,
    action: Action,
}

impl Joining {
    /// Returns how a request joins a group; `None` if it runs alone.
    #[inline]
    pub(crate) fn of(
        shared: &Shared,
        session: &mut Session,
        arguments: Arguments<'_>,
        work: &mut Work,
    ) -> Option<Self> {
        let is_plain = session.is_authenticated
            && session.queue.is_none()
            && session.subscriptions.is_none()
            && session.replies == ReplyMode::On;
        if !is_plain {
            return None;
        }
        let info = work.find(shared, arguments.at(0)).filter(|info| info.has(GROUPED))?;
        let action = action_of(info, arguments)?;
        session.slot = shared.databases.slot(session.database);
        check_user(shared, session, info).ok()?;
        session.command = info.name;
        let database = Database { number: session.database, slot: session.slot };
        let kind = if info.has(WRITE) { GroupKind::Writes } else { GroupKind::Reads };
        if kind == GroupKind::Writes && events::are_wanted(shared) {
            // The command announces what it changes.
            return None;
        }
        Some(Self { kind, database, protocol: session.protocol, action })
    }
}

/// Returns what a command does; `None` if it has options or errors.
fn action_of(info: &CommandInfo, arguments: Arguments<'_>) -> Option<Action> {
    match (info.name, arguments.len()) {
        ("get", 2) => Some(Action::Get),
        ("set", 3) => Some(Action::Set),
        ("mset", len) if len % 2 == 1 && (3..=2 * KEYS).contains(&len) => Some(Action::Set),
        ("incr", 2) => Some(Action::Add(1)),
        ("decr", 2) => Some(Action::Add(-1)),
        ("incrby", 3) => integer(arguments.at(2)).map(Action::Add),
        ("decrby", 3) => integer(arguments.at(2)).and_then(i64::checked_neg).map(Action::Add),
        _ => None,
    }
}

/// A command of a group.
#[derive(Debug)]
struct Member {
    connection: usize,
    request: Span,
    protocol: Protocol,
    /// The index after its last key.
    keys_end: usize,
    /// Where its reply ends; `None` before it has run.
    reply_end: Option<usize>,
}

/// A key of a command.
#[derive(Debug, Clone, Copy)]
struct GroupKey {
    key: Span,
    change: Change,
}

/// What a command does with a key.
#[derive(Debug, Clone, Copy)]
enum Change {
    None,
    Set(Span),
    Add(i64),
}

/// Commands that run together.
#[derive(Debug)]
pub(crate) struct Group {
    database: Database,
    members: Vec<Member>,
    keys: Vec<GroupKey>,
    bytes: usize,
    /// The most commands that the next group may have: fewer after long replies.
    commands_max: usize,
    batch: WriteBatch,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            database: Database::default(),
            members: Vec::new(),
            keys: Vec::new(),
            bytes: 0,
            commands_max: COMMANDS,
            batch: WriteBatch::new(),
        }
    }
}

/// How a group ran.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The number of commands that have run and have a reply. Nothing was done for the others.
    answered: usize,
    /// Whether the others must wait, for space in the tree or for the lock of a key.
    pub(crate) is_stalled: bool,
    /// Whether the replies depend on a sync.
    pub(crate) depends_on_sync: bool,
    took: Duration,
}

impl Group {
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns whether a connection has commands in the group. Connections join one after the other.
    #[inline]
    pub(crate) fn has(&self, connection: usize) -> bool {
        self.members.last().is_some_and(|member| member.connection == connection)
    }

    /// Returns the number of connections with commands in the group.
    fn clients(&self) -> usize {
        self.members.chunk_by(|one, next| one.connection == next.connection).count()
    }

    /// Returns whether a request is short enough for a group.
    #[inline]
    pub(crate) fn takes_request(len: usize) -> bool {
        len <= REQUEST_BYTES
    }

    /// Returns whether a request fits into the group.
    #[inline]
    pub(crate) fn takes(&self, request: &Request<'_>, joining: &Joining) -> bool {
        let keys = request.arguments.len() / 2;
        self.is_empty()
            || (self.database == joining.database
                && self.members.len() < self.commands_max
                && self.keys.len() + keys <= KEYS
                && self.bytes + request.place.range().len() <= BYTES)
    }

    /// Adds a request, for which [`Self::takes`] holds.
    #[inline]
    pub(crate) fn add(&mut self, request: &Request<'_>, joining: &Joining) {
        let (arguments, place) = (request.arguments, request.place);
        let span = |index| arguments.span(index).map(|span| place.part(span));
        match joining.action {
            Action::Get | Action::Add(_) => {
                let change = match joining.action {
                    Action::Add(by) => Change::Add(by),
                    _ => Change::None,
                };
                self.keys.extend(span(1).map(|key| GroupKey { key, change }));
            }
            Action::Set => {
                let pairs = (1..arguments.len()).step_by(2);
                let pairs = pairs.filter_map(|at| span(at).zip(span(at + 1)));
                let keys = pairs.map(|(key, value)| GroupKey { key, change: Change::Set(value) });
                self.keys.extend(keys);
            }
        }
        self.database = joining.database;
        self.bytes += place.range().len();
        self.members.push(Member {
            connection: request.connection,
            request: place,
            protocol: joining.protocol,
            keys_end: self.keys.len(),
            reply_end: None,
        });
    }

    /// Runs the commands, whose requests are in `buffer`, and appends their replies to `out`.
    pub(crate) fn run(
        &mut self,
        kind: GroupKind,
        (shared, worker): (&Shared, usize),
        buffer: &[u8],
        out: &mut Vec<u8>,
        work: &mut Work,
    ) -> Ran {
        let began = Instant::now();
        let mut store =
            Store::new(&shared.databases, &shared.locks, shared.durable.unsynced(worker));
        store.note_read();
        match kind {
            // The user's access to the other database must be checked.
            _ if self.database.is_swapped(shared) => {}
            GroupKind::Reads => self.read(&store, buffer, out, work),
            GroupKind::Writes
                if is_stalled(shared, self.database.slot, work.delays, self.clients()) => {}
            GroupKind::Writes => {
                let mut delays = work.delays;
                let db = shared.databases.db();
                delays.collect(db, || self.write((shared, &mut store), buffer, out, work));
                work.delays = delays;
            }
        }
        let answered = self.members.iter().filter(|member| member.reply_end.is_some()).count();
        let is_stalled = kind == GroupKind::Writes && answered < self.members.len();
        let took = began.elapsed();
        if answered > 0 {
            shared.note_pause(latency::COMMAND, took);
        }
        let depends_on_sync = store.depends_on_sync(&shared.durable);
        Ran { answered, is_stalled, depends_on_sync, took }
    }

    fn read(&mut self, store: &Store<'_>, buffer: &[u8], out: &mut Vec<u8>, work: &mut Work) {
        let keys: Vec<&[u8]> = self.keys.iter().map(|key| key.key.of(buffer)).collect();
        let (start, mut errors, mut lookups) = (out.len(), 0, LookupCounts::default());
        let mut answered = 0;
        let mut all = std::mem::take(out);
        let slot = self.database.slot;
        // Each member has one key.
        let portions = self.members.chunks_mut(LOOKUPS).zip(keys.chunks(LOOKUPS));
        let found =
            portions.flat_map(|(members, keys)| members.iter_mut().zip(store.get_each(slot, keys)));
        for (member, found) in found {
            let mut reply = Reply::new(all, member.protocol);
            match found {
                Ok(value) => {
                    let count =
                        if value.is_some() { &mut lookups.hits } else { &mut lookups.misses };
                    *count += 1;
                    reply.bulk_or_null(value.as_deref());
                }
                Err(fault) => {
                    errors += 1;
                    reply.error(&CommandError::from(fault).0);
                }
            }
            all = reply.into_buffer();
            member.reply_end = Some(all.len());
            answered += 1;
            if all.len() - start > REPLY_BYTES {
                break;
            }
        }
        *out = all;
        // Values that were read but not sent are read again.
        let is_cut = answered < self.members.len();
        self.commands_max = if is_cut { answered } else { (self.commands_max * 2).min(COMMANDS) };
        work.add(answered, errors, lookups);
    }

    /// Returns the connections of the commands that have run, and where their replies end.
    pub(crate) fn replies(&self) -> impl Iterator<Item = (usize, usize)> {
        self.members.iter().filter_map(|member| Some((member.connection, member.reply_end?)))
    }

    /// Returns the connections with commands that have not run, and the ranges of these requests, which are
    /// the last ones of their connection.
    pub(crate) fn unanswered(&self) -> Vec<(usize, Range<usize>)> {
        let mut all: Vec<(usize, Range<usize>)> = Vec::new();
        for member in self.members.iter().filter(|member| member.reply_end.is_none()) {
            let request = member.request.range();
            match all.last_mut() {
                Some((connection, range)) if *connection == member.connection => {
                    range.end = request.end;
                }
                _ => all.push((member.connection, request)),
            }
        }
        all
    }

    /// Returns the slow commands among those with an answer, with their connections. The time of the group
    /// is divided equally; if only the whole group is slow, its first command is returned.
    pub(crate) fn slow(&self, ran: &Ran, threshold: Duration) -> Vec<(usize, Span, Duration)> {
        let share = ran.took / u32::try_from(ran.answered.max(1)).unwrap_or(u32::MAX);
        let (count, took) = match ran.took >= threshold {
            true if share >= threshold => (ran.answered, share),
            true => (ran.answered.min(1), ran.took),
            false => (0, share),
        };
        let slow = self.members.iter().filter(|member| member.reply_end.is_some()).take(count);
        slow.map(|member| (member.connection, member.request, took)).collect()
    }

    /// Forgets all commands.
    pub(crate) fn clear(&mut self) {
        self.members.clear();
        self.keys.clear();
        self.bytes = 0;
    }
}

/// Adds a command that was part of a group to the slow log.
#[cold]
pub(crate) fn note_slow_member(shared: &Shared, client: &Client, request: &[u8], took: Duration) {
    let mut parser = RequestParser::new();
    let parsed = parser.parse(request, &shared.config.limits.request());
    if matches!(parsed, Ok(Parsed::Complete(_))) {
        note_slow(shared, client, &parser.arguments(request), took);
    }
}
