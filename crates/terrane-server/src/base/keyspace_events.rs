//! Which changes of keys are announced on channels: the setting `notify-keyspace-events` of Redis.

use std::fmt;
use std::str::FromStr;

/// The letters, in the order in which Redis prints them. `A` stands for the first [`ALL_LETTERS`]
/// of them.
const LETTERS: &[u8] = b"g$lshzxetdKEmn";

/// The number of letters that `A` stands for.
const ALL_LETTERS: usize = 10;

const ALL: u16 = (1 << ALL_LETTERS) - 1;

/// The key changes to announce, and the channels to announce them on, in the syntax of Redis's setting
/// `notify-keyspace-events`: `KEA` announces everything on both kinds of channels, `Ex` only expired keys.
/// Empty, the default, announces nothing.
///
/// ```
/// use terrane_server::{Config, KeyspaceEvents};
/// let keyspace_events: KeyspaceEvents = "K$".parse()?;
/// let config = Config { keyspace_events, ..Config::default() };
/// # Ok::<(), &'static str>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyspaceEvents(u16);

/// A class of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Generic,
    String,
    Hash,
    Expired,
}

impl KeyspaceEvents {
    /// Returns the letters as bits, which [`Self::of`] takes.
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    pub(crate) fn of(bits: u16) -> Self {
        Self(bits)
    }

    fn has(self, letter: u8) -> bool {
        bit(letter).is_some_and(|bit| self.0 & bit != 0)
    }

    /// Returns whether changes of a class are announced.
    pub(crate) fn has_class(self, class: Class) -> bool {
        self.has(match class {
            Class::Generic => b'g',
            Class::String => b'$',
            Class::Hash => b'h',
            Class::Expired => b'x',
        })
    }

    /// Returns whether changes are announced on the key's channel.
    pub(crate) fn has_key_channels(self) -> bool {
        self.has(b'K')
    }

    /// Returns whether changes are announced on the event's channel.
    pub(crate) fn has_event_channels(self) -> bool {
        self.has(b'E')
    }
}

fn bit(letter: u8) -> Option<u16> {
    LETTERS.iter().position(|known| *known == letter).map(|at| 1 << at)
}

impl FromStr for KeyspaceEvents {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bits = text.bytes().try_fold(0, |bits, letter| match letter {
            b'A' => Some(bits | ALL),
            letter => Some(bits | bit(letter)?),
        });
        bits.map(Self).ok_or("invalid class of events; use letters of 'Ag$lshzxeKEtmdn'")
    }
}

impl fmt::Display for KeyspaceEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_all = self.0 & ALL == ALL;
        if has_all {
            f.write_str("A")?;
        }
        let rest = LETTERS.iter().skip(if has_all { ALL_LETTERS } else { 0 });
        rest.filter(|letter| self.has(**letter))
            .try_for_each(|letter| write!(f, "{}", *letter as char))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_printed_as_redis_prints_them() {
        for (text, expected) in
            [("", ""), ("KEA", "AKE"), ("EKx$", "$xKE"), ("g$lshzxetdE", "AE"), ("AKnm", "AKmn")]
        {
            let events: KeyspaceEvents = text.parse().unwrap();
            assert_eq!(events.to_string(), expected, "{text}");
            assert_eq!(KeyspaceEvents::of(events.bits()), events);
        }
        assert!("Kq".parse::<KeyspaceEvents>().is_err());
        let strings: KeyspaceEvents = "K$".parse().unwrap();
        assert!(strings.has_class(Class::String) && !strings.has_class(Class::Hash));
        assert!(strings.has_key_channels() && !strings.has_event_channels());
    }
}
