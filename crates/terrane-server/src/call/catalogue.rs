//! The commands by name. Each family of commands is a file in `commands/`, with a line for each command.

use std::collections::HashMap;

use crate::call::Handler;
use crate::protocol::Arguments;

/// A command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandInfo {
    /// The name in lower case.
    pub(crate) name: &'static str,
    /// The number of arguments, including the name; a negative number is a minimum.
    pub(crate) arity: i32,
    pub(crate) flags: u16,
    pub(crate) keys: KeyPositions,
    pub(crate) summary: &'static str,
    pub(crate) run: Handler,
}

/// Defines a command.
pub(crate) const fn command(
    name: &'static str,
    arity: i32,
    flags: u16,
    keys: KeyPositions,
    summary: &'static str,
    run: Handler,
) -> CommandInfo {
    CommandInfo { name, arity, flags, keys, summary, run }
}

/// Reads keys.
pub(crate) const READ: u16 = 1;
/// Writes; the keys are locked while it runs.
pub(crate) const WRITE: u16 = 1 << 1;
/// Takes constant time, whatever the number of keys.
pub(crate) const FAST: u16 = 1 << 2;
/// Is refused to users who may not administer the server.
pub(crate) const ADMIN: u16 = 1 << 3;
/// Runs before a client has authenticated.
pub(crate) const NO_AUTH: u16 = 1 << 4;
/// Is refused between `MULTI` and `EXEC`.
pub(crate) const NO_MULTI: u16 = 1 << 5;
/// Runs at once between `MULTI` and `EXEC`.
pub(crate) const IMMEDIATE: u16 = 1 << 6;
/// Locks every key.
pub(crate) const ALL_KEYS: u16 = 1 << 7;
/// Stays out of the slow log, because its arguments are secret.
pub(crate) const SECRET: u16 = 1 << 8;
/// May make a value longer.
pub(crate) const GROWS: u16 = 1 << 9;

/// Shows the state of the server or the engine, and no keys or values.
pub(crate) const STATE: u16 = 1 << 10;

/// Runs queued commands, which may write to any database.
pub(crate) const COMMITS: u16 = 1 << 11;

/// Runs in a connection of RESP2 that subscribes to channels.
pub(crate) const SUBSCRIBES: u16 = 1 << 12;

/// Consecutive calls without options run together (`commands/groups.rs`).
pub(crate) const GROUPED: u16 = 1 << 13;

/// The flags as `COMMAND` reports them.
const FLAG_NAMES: [(u16, &str); 8] = [
    (WRITE, "write"),
    (READ, "readonly"),
    (GROWS, "denyoom"),
    (ADMIN, "admin"),
    (NO_MULTI, "no_multi"),
    (FAST, "fast"),
    (NO_AUTH, "no_auth"),
    (SECRET, "skip_slowlog"),
];

/// Which arguments are keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyPositions {
    pub(crate) first: i32,
    /// Negative from the end: -1 is the last argument.
    pub(crate) last: i32,
    pub(crate) step: i32,
}

/// No argument is a key.
pub(crate) const NO_KEYS: KeyPositions = keys(0, 0, 0);
/// The first argument is a key.
pub(crate) const ONE_KEY: KeyPositions = keys(1, 1, 1);
/// The first two arguments are keys.
pub(crate) const TWO_KEYS: KeyPositions = keys(1, 2, 1);
/// All arguments are keys.
pub(crate) const EVERY_KEY: KeyPositions = keys(1, -1, 1);

/// Returns the positions of keys.
pub(crate) const fn keys(first: i32, last: i32, step: i32) -> KeyPositions {
    KeyPositions { first, last, step }
}

impl KeyPositions {
    /// Returns the keys among the arguments.
    pub(crate) fn of<'a>(self, arguments: Arguments<'a>) -> impl Iterator<Item = &'a [u8]> {
        let len = i32::try_from(arguments.len()).unwrap_or(i32::MAX);
        let last = if self.last < 0 { len + self.last } else { self.last.min(len - 1) };
        let positions = self.first.max(1)..=last;
        let step = usize::try_from(self.step).unwrap_or(0).max(1);
        let positions = positions.step_by(step).filter(move |_| self.first > 0);
        positions.filter_map(move |at| arguments.get(usize::try_from(at).ok()?))
    }
}

impl CommandInfo {
    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn accepts(&self, arguments: usize) -> bool {
        let wanted = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { arguments >= wanted } else { arguments == wanted }
    }

    pub(crate) fn flag_names(&self) -> Vec<&'static str> {
        FLAG_NAMES.iter().filter(|(flag, _)| self.has(*flag)).map(|(_, name)| *name).collect()
    }
}

/// A family of commands.
#[derive(Debug)]
pub(crate) struct Family {
    /// The group of `COMMAND DOCS`.
    pub(crate) group: &'static str,
    pub(crate) commands: &'static [CommandInfo],
}

/// All commands.
#[derive(Debug)]
pub(crate) struct Catalogue {
    by_name: HashMap<&'static [u8], (&'static str, &'static CommandInfo)>,
}

/// The longest name.
const MAX_NAME: usize = 32;

impl Catalogue {
    pub(crate) fn new(families: &'static [Family]) -> Self {
        let all = families.iter().flat_map(|family| {
            family.commands.iter().map(|info| (info.name.as_bytes(), (family.group, info)))
        });
        Self { by_name: all.collect() }
    }

    /// Finds a command by its name in any case.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&'static CommandInfo> {
        self.with_group(name).map(|(_, info)| info)
    }

    /// Finds a command and its group.
    pub(crate) fn with_group(&self, name: &[u8]) -> Option<(&'static str, &'static CommandInfo)> {
        let mut lower = [0; MAX_NAME];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.by_name.get(&*lower).copied()
    }

    /// Returns all commands with their groups, in the order of their names.
    pub(crate) fn all(&self) -> Vec<(&'static str, &'static CommandInfo)> {
        let mut all: Vec<_> = self.by_name.values().copied().collect();
        all.sort_unstable_by_key(|(_, info)| info.name);
        all
    }
}
