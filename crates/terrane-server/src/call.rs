//! One call of a command: its arguments, its reply, and what it works on.

pub(crate) mod catalogue;
pub(crate) mod shared;

use std::borrow::Cow;
use std::sync::Arc;

use terrane::{Clock, SystemClock};

use crate::call::shared::Shared;
use crate::protocol::{Arguments, Reply};
use crate::state::session::Session;
use crate::store::{Fault, Store};

/// One call of a command.
#[derive(Debug)]
pub(crate) struct Call<'c, 'a> {
    pub(crate) arguments: Arguments<'c>,
    pub(crate) reply: &'c mut Reply,
    pub(crate) session: &'c mut Session,
    pub(crate) store: &'c mut Store<'a>,
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) counts: &'c mut LookupCounts,
}

/// Lookups that found a value, and those that did not.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct LookupCounts {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

/// Carries out a command: writes its reply, or returns the error that is the reply.
pub(crate) type Handler = fn(&mut Call<'_, '_>) -> Outcome;

/// The result of a command.
pub(crate) type Outcome<T = ()> = Result<T, CommandError>;

/// An error that is the reply to a command: a code in capitals, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandError(pub(crate) Cow<'static, str>);

impl From<&'static str> for CommandError {
    fn from(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for CommandError {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl From<terrane::Error> for CommandError {
    fn from(error: terrane::Error) -> Self {
        use terrane::ErrorKind::{Closed, Corruption, Io, Poisoned};
        // Clients retry or report a code, people read the sentence.
        let code = match error.kind() {
            Io | Poisoned | Corruption | Closed => "MISCONF",
            _ => "ERR",
        };
        Self(Cow::Owned(format!("{code} {error}")))
    }
}

impl From<Fault> for CommandError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::WrongType => {
                "WRONGTYPE Operation against a key holding the wrong kind of value".into()
            }
            Fault::TooLarge => {
                "ERR the hash is larger than a request may be; copy its fields in parts with HSCAN"
                    .into()
            }
            Fault::Database(error) => error.into(),
        }
    }
}

/// The error for a value that is not an integer.
pub(crate) const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
/// The error for unknown or contradictory options.
pub(crate) const SYNTAX: &str = "ERR syntax error";

impl<'c> Call<'c, '_> {
    /// Returns an argument; empty if there is none at `index`.
    pub(crate) fn argument(&self, index: usize) -> &'c [u8] {
        self.arguments.at(index)
    }

    /// Returns the key of a command with one key.
    pub(crate) fn key(&self) -> &'c [u8] {
        self.arguments.at(1)
    }

    /// Returns the slot of the selected database.
    pub(crate) fn db(&self) -> usize {
        self.session.slot
    }

    /// Returns an argument as an integer.
    pub(crate) fn integer(&self, index: usize) -> Outcome<i64> {
        Ok(integer(self.argument(index)).ok_or(NOT_AN_INTEGER)?)
    }

    /// Returns an argument as the number of a database that the client may use.
    pub(crate) fn database(&self, index: usize) -> Outcome<usize> {
        let number = integer(self.argument(index)).ok_or(NOT_AN_INTEGER)?;
        let number = usize::try_from(number).ok();
        let databases = &self.shared.databases;
        let number = number.filter(|number| *number < databases.len());
        let number = number.ok_or("ERR DB index is out of range")?;
        let name = databases.name(databases.slot(number));
        match &self.session.user {
            Some(user) if !user.may_use(name) => {
                Err(format!("NOPERM this user may not use the keyspace '{name}'").into())
            }
            _ => Ok(number),
        }
    }

    /// Sets the value of a key until a time. A time that has passed removes the key.
    pub(crate) fn put_until(
        &mut self,
        key: &[u8],
        value: &[u8],
        expires_at: Option<u64>,
    ) -> Outcome {
        let db = self.db();
        if expires_at.is_some_and(|expires_at| expires_at <= SystemClock.now_micros()) {
            self.store.delete(db, key)?;
        } else {
            self.store.put(db, key, value, expires_at)?;
        }
        Ok(())
    }

    /// Counts a lookup for `INFO`.
    #[inline]
    pub(crate) fn count_lookup(&mut self, is_found: bool) {
        let count = if is_found { &mut self.counts.hits } else { &mut self.counts.misses };
        *count += 1;
    }

    /// Fails if the reply has become longer than a client may leave unread.
    pub(crate) fn check_reply_len(&self) -> Outcome {
        let limit = self.shared.config.limits.output_bytes;
        if self.reply.len() <= limit {
            return Ok(());
        }
        Err(format!("ERR the reply is longer than {limit} bytes; ask for fewer keys").into())
    }

    /// Fails if the command runs in its own thread and was cancelled.
    pub(crate) fn check_cancelled(&self) -> terrane::Result<()> {
        match &self.session.aside {
            Some(maintenance) if maintenance.is_cancelled() => Err(terrane::Error::Cancelled),
            _ => Ok(()),
        }
    }

    /// Returns whether an argument is a word, in any case.
    pub(crate) fn is(&self, index: usize, word: &str) -> bool {
        self.argument(index).eq_ignore_ascii_case(word.as_bytes())
    }
}

/// Parses an integer as Redis does: no sign `+`, no spaces, no leading zeros.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_negative = digits.len() < text.len();
    if digits.is_empty() || digits.len() > 19 || (digits[0] == b'0' && text.len() > 1) {
        return None;
    }
    let mut value: i64 = 0;
    for byte in digits {
        let digit = i64::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        // The smallest number has no positive counterpart.
        value = value.checked_mul(10)?.checked_sub(digit)?;
    }
    if is_negative { Some(value) } else { value.checked_neg() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_parsed_strictly() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-7", Some(-7)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-0", None),
            ("01", None),
            ("+1", None),
            (" 1", None),
            ("1 ", None),
            ("", None),
            ("-", None),
            ("1.5", None),
        ] {
            assert_eq!(integer(text.as_bytes()), expected, "{text}");
        }
    }
}
