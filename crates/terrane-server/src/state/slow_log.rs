//! The slow log: the commands that took longest.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use terrane::{Clock, SystemClock};

use crate::protocol::Arguments;

/// The most arguments of a command that an entry keeps, and the most bytes of each.
const MAX_ARGUMENTS: usize = 32;
const MAX_ARGUMENT: usize = 128;

/// A slow command.
#[derive(Debug, Clone)]
pub(crate) struct SlowCommand {
    pub(crate) id: u64,
    /// Seconds since the Unix epoch.
    pub(crate) at: u64,
    pub(crate) micros: u64,
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) address: Box<str>,
    pub(crate) name: Box<str>,
}

/// The last slow commands.
#[derive(Debug, Default)]
pub(crate) struct SlowLog(Mutex<(u64, VecDeque<SlowCommand>)>);

impl SlowLog {
    /// Adds a command, and keeps at most `len`.
    pub(crate) fn add(
        &self,
        arguments: &Arguments<'_>,
        took: Duration,
        (address, name): (&str, &str),
        len: usize,
    ) {
        let mut kept: Vec<Vec<u8>> = arguments.range(0..MAX_ARGUMENTS).map(shortened).collect();
        if arguments.len() > MAX_ARGUMENTS {
            let more = format!("... ({} more arguments)", arguments.len() - MAX_ARGUMENTS + 1);
            kept.pop();
            kept.push(more.into_bytes());
        }
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, commands) = &mut *log;
        commands.push_front(SlowCommand {
            id: *next,
            at: SystemClock.now_micros() / 1_000_000,
            micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            arguments: kept,
            address: address.into(),
            name: name.into(),
        });
        *next += 1;
        commands.truncate(len);
    }

    /// Returns the newest commands, newest first.
    pub(crate) fn newest(&self, count: usize) -> Vec<SlowCommand> {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.1.iter().take(count).cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.len()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clear();
    }
}

fn shortened(argument: &[u8]) -> Vec<u8> {
    match argument.get(..MAX_ARGUMENT) {
        Some(head) if argument.len() > MAX_ARGUMENT => {
            let more = format!("... ({} more bytes)", argument.len() - MAX_ARGUMENT);
            [head, more.as_bytes()].concat()
        }
        _ => argument.to_vec(),
    }
}
