//! Finds and runs the command of a request.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use terrane::DeferredDelays;

use super::admission::{try_locks, would_stall};
use super::events;
use crate::call::catalogue::{
    ADMIN, COMMITS, CommandInfo, IMMEDIATE, NO_AUTH, NO_MULTI, READ, SECRET, STATE, SUBSCRIBES,
    WRITE,
};
use crate::call::shared::Shared;
use crate::call::{Call, CommandError, LookupCounts, Outcome};
use crate::protocol::{Arguments, Protocol, Reply};
use crate::state::clients::Client;
use crate::state::latency;
use crate::state::session::{Next, Queue, ReplyMode, Session};
use crate::store::{Held, Store};

/// A worker's activity since its last report.
#[derive(Debug)]
pub(crate) struct Work {
    commands: u64,
    errors: u64,
    lookups: LookupCounts,
    /// The last command, because clients often repeat one.
    last: Option<&'static CommandInfo>,
    /// The end of the last command, which is the start of the next one.
    clock: Instant,
    /// Whether the next command follows the last one without a pause.
    is_timed: bool,
    /// The delays of writes, for which the event loop does not sleep.
    pub(super) delays: DeferredDelays,
}

impl Default for Work {
    fn default() -> Self {
        let (commands, errors, lookups, last) = (0, 0, LookupCounts::default(), None);
        let (clock, is_timed, delays) = (Instant::now(), false, DeferredDelays::new());
        Self { commands, errors, lookups, last, clock, is_timed, delays }
    }
}

impl Work {
    /// Adds the work to the counts of the server.
    pub(crate) fn report(&mut self, shared: &Shared) {
        let counts = &shared.counts;
        for (count, by) in [
            (&counts.commands, self.commands),
            (&counts.errors, self.errors),
            (&counts.hits, self.lookups.hits),
            (&counts.misses, self.lookups.misses),
        ] {
            if by > 0 {
                count.fetch_add(by, Ordering::Relaxed);
            }
        }
        let Self { last, clock, delays, .. } = *self;
        *self = Self { last, clock, delays, ..Self::default() };
    }

    /// Called if the next command does not follow the last one.
    pub(crate) fn pause(&mut self) {
        self.is_timed = false;
    }

    /// Begins to measure the time of a command.
    #[inline]
    fn start_clock(&mut self) {
        if !self.is_timed {
            (self.clock, self.is_timed) = (Instant::now(), true);
        }
    }

    /// Counts commands that ran together.
    pub(super) fn add(&mut self, commands: usize, errors: u64, lookups: LookupCounts) {
        self.commands += commands as u64;
        self.errors += errors;
        self.lookups.hits += lookups.hits;
        self.lookups.misses += lookups.misses;
    }

    /// Finds a command by its name in any case.
    #[inline]
    pub(super) fn find(&mut self, shared: &Shared, name: &[u8]) -> Option<&'static CommandInfo> {
        if let Some(last) = self.last
            && name.eq_ignore_ascii_case(last.name.as_bytes())
        {
            return self.last;
        }
        let found = shared.catalogue.find(name);
        self.last = found.or(self.last);
        found
    }
}

/// Runs a request, and writes its reply at the end of `out`. Returns whether the reply depends on a write of
/// this or another command, so that an error must replace it if that write does not become durable.
pub(crate) fn run_request(
    shared: &Arc<Shared>,
    session: &mut Session,
    arguments: Arguments<'_>,
    out: &mut Vec<u8>,
    work: &mut Work,
) -> bool {
    work.commands += 1;
    work.start_clock();
    let start = out.len();
    let unsynced = shared.durable.unsynced(session.client.worker);
    let mut store = Store::new(&shared.databases, &shared.locks, unsynced);
    let slow_micros = shared.settings.slow_micros.load(Ordering::Relaxed);
    let mut reply = Reply::new(std::mem::take(out), session.protocol);
    let (info, outcome) = request(shared, session, arguments, &mut store, &mut reply, work);
    if let Err(CommandError(text)) = outcome {
        reply.restart();
        reply.error(&text);
        work.errors += 1;
    }
    *out = reply.into_buffer();
    if session.next == Next::Retry {
        // The command has done nothing yet.
        work.commands -= 1;
        out.truncate(start);
        return false;
    }
    if let Some(info) = info {
        let now = Instant::now();
        let took = now - std::mem::replace(&mut work.clock, now);
        let is_slow = |micros| took >= Duration::from_micros(micros);
        if u64::try_from(slow_micros).is_ok_and(is_slow) && !info.has(SECRET) {
            note_slow(shared, &session.client, &arguments, took);
        }
        shared.note_pause(latency::COMMAND, took);
    }
    let depends_on_sync = store.depends_on_sync(&shared.durable);
    drop(store);
    match session.replies {
        ReplyMode::On => {}
        ReplyMode::Off => out.truncate(start),
        ReplyMode::SkipNext => {
            out.truncate(start);
            session.replies = ReplyMode::Skip;
        }
        ReplyMode::Skip => {
            out.truncate(start);
            session.replies = ReplyMode::On;
        }
    }
    depends_on_sync
}

/// Records the end of a command that ran in its own thread.
pub(super) fn note_end(
    shared: &Shared,
    session: &Session,
    arguments: &Arguments<'_>,
    took: Duration,
) {
    let slow_micros = shared.settings.slow_micros.load(Ordering::Relaxed);
    if u64::try_from(slow_micros).is_ok_and(|micros| took >= Duration::from_micros(micros)) {
        note_slow(shared, &session.client, arguments, took);
    }
}

#[cold]
pub(super) fn note_slow(
    shared: &Shared,
    client: &Client,
    arguments: &Arguments<'_>,
    took: Duration,
) {
    let name = client.texts().name.clone();
    let client = (&*client.address, &*name);
    let len = shared.settings.slow_log_len.load(Ordering::Relaxed);
    shared.slow_log.add(arguments, took, client, len);
}

/// Checks a request, and runs or queues it.
fn request<'a>(
    shared: &'a Arc<Shared>,
    session: &mut Session,
    arguments: Arguments<'_>,
    store: &mut Store<'a>,
    reply: &mut Reply,
    work: &mut Work,
) -> (Option<&'static CommandInfo>, Outcome) {
    session.slot = shared.databases.slot(session.database);
    let found = work.find(shared, arguments.at(0));
    let checked = check(shared, session, arguments, found);
    let info = match checked {
        Ok(info) => info,
        Err(error) => {
            // A transaction with a command that was refused cannot be committed.
            if let Some(queue) = &mut session.queue {
                queue.is_broken = true;
            }
            if is_http(arguments.at(0)) {
                session.next = Next::Close;
            }
            return (None, Err(error));
        }
    };
    session.command = info.name;
    if let Some(queue) = &mut session.queue
        && !info.has(IMMEDIATE)
    {
        let outcome = enqueue(shared, queue, arguments, reply);
        let queued = i64::try_from(queue.commands.len()).unwrap_or(i64::MAX);
        session.client.queued.store(queued, Ordering::Relaxed);
        return (None, outcome);
    }
    if would_stall(shared, session.slot, info, work.delays) {
        session.next = Next::Retry;
        return (Some(info), Ok(()));
    }
    let Some(held) = try_locks(shared, info, arguments) else {
        session.next = Next::Retry;
        return (Some(info), Ok(()));
    };
    note_read(store, info);
    store.held = held;
    if info.has(WRITE) && session.slot != shared.databases.slot(session.database) {
        // SWAPDB ran first, so the user's access to the other database must be checked.
        store.held = Held::default();
        session.next = Next::Retry;
        return (Some(info), Ok(()));
    }
    if info.has(WRITE | COMMITS) {
        events::begin(shared, store);
    }
    let Work { lookups: counts, delays, .. } = work;
    let mut call = Call { arguments, reply, session, store, shared, counts };
    let outcome = match info.has(WRITE | COMMITS) {
        true => delays.collect(shared.databases.db(), || (info.run)(&mut call)),
        false => (info.run)(&mut call),
    };
    if outcome.is_ok() {
        events::announce(shared, session, store, arguments);
    }
    store.held = Held::default();
    (Some(info), outcome)
}

/// Marks the reply as dependent on stored data. Replies to writes can be as well.
#[inline]
pub(super) fn note_read(store: &Store<'_>, info: &CommandInfo) {
    if info.has(READ | WRITE) && !info.has(STATE) {
        store.note_read();
    }
}

/// Returns whether a name is the first word of an HTTP request or of its header. A web page in a browser on
/// this host can send such a request, with commands in its body, to a server whose answers it cannot read.
fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// Finds the command, and rejects it if it may not run here.
fn check(
    shared: &Shared,
    session: &Session,
    arguments: Arguments<'_>,
    found: Option<&'static CommandInfo>,
) -> Outcome<&'static CommandInfo> {
    if !session.is_authenticated && !found.is_some_and(|info| info.has(NO_AUTH)) {
        return Err("NOAUTH Authentication required.".into());
    }
    let info = found.ok_or_else(|| unknown_command(arguments))?;
    if !info.accepts(arguments.len()) {
        return Err(format!("ERR wrong number of arguments for '{}' command", info.name).into());
    }
    if session.queue.is_some() && info.has(NO_MULTI) && !info.has(IMMEDIATE) {
        return Err(format!("ERR Command '{}' not allowed inside a transaction", info.name).into());
    }
    if session.subscriptions.is_some()
        && session.protocol == Protocol::Resp2
        && !info.has(SUBSCRIBES)
    {
        return Err(format!(
            "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in \
             this context",
            info.name
        )
        .into());
    }
    check_user(shared, session, info)?;
    Ok(info)
}

/// Refuses a command that the user may not run.
pub(super) fn check_user(shared: &Shared, session: &Session, info: &CommandInfo) -> Outcome {
    let Some(user) = &session.user else { return Ok(()) };
    let name = info.name;
    if info.has(WRITE) && !user.may_write() {
        return Err(format!("NOPERM this user may only read, and '{name}' writes").into());
    }
    if info.has(ADMIN) && !user.may_administer() {
        return Err(format!("NOPERM this user may not run '{name}', an admin command").into());
    }
    let keyspace = shared.databases.name(session.slot);
    if (info.has(WRITE) || info.has(READ)) && !user.may_use(keyspace) {
        return Err(format!("NOPERM this user may not use the keyspace '{keyspace}'").into());
    }
    Ok(())
}

#[cold]
fn unknown_command(arguments: Arguments<'_>) -> CommandError {
    let shown = |argument: &[u8]| {
        String::from_utf8_lossy(argument.get(..128).unwrap_or(argument)).into_owned()
    };
    let mut beginning = String::new();
    for argument in arguments.from(1) {
        if beginning.len() >= 128 {
            break;
        }
        beginning += &format!("'{}' ", shown(argument));
    }
    let name = shown(arguments.at(0));
    format!("ERR unknown command '{name}', with args beginning with: {beginning}").into()
}

fn enqueue(
    shared: &Shared,
    queue: &mut Queue,
    arguments: Arguments<'_>,
    reply: &mut Reply,
) -> Outcome {
    let owned = arguments.copied();
    let bytes = queue.bytes + owned.memory() + size_of_val(&owned);
    if bytes > shared.config.limits.request_bytes {
        queue.is_broken = true;
        return Err("ERR the transaction is longer than a request may be".into());
    }
    queue.bytes = bytes;
    queue.commands.push(owned);
    reply.simple("QUEUED");
    Ok(())
}

/// Returns the error of a subcommand that does not exist.
#[cold]
pub(super) fn unknown_subcommand(call: &Call<'_, '_>) -> CommandError {
    let command = String::from_utf8_lossy(call.argument(0)).to_ascii_uppercase();
    let sub = call.argument(1);
    let sub = String::from_utf8_lossy(sub.get(..128).unwrap_or(sub)).into_owned();
    format!("ERR unknown subcommand '{sub}'. Try {command} HELP.").into()
}

/// Returns the error of a subcommand with too many or too few arguments.
#[cold]
pub(super) fn wrong_subcommand_arity(call: &Call<'_, '_>) -> CommandError {
    let name = |index| String::from_utf8_lossy(call.argument(index)).to_ascii_lowercase();
    format!("ERR wrong number of arguments for '{}|{}' command", name(0), name(1)).into()
}
