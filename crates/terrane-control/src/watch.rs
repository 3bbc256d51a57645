//! Who waits for a request: a client at a socket, or a person at a terminal.

use std::time::Duration;

use crate::protocol::{Item, Progress};

/// Whether somebody still waits for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interest {
    /// Somebody waits for it.
    Waiting,
    /// Somebody has cancelled it, and waits for its end.
    Cancelled,
    /// Nobody waits for it any more.
    Gone,
    /// The database is being closed.
    Closing,
}

/// Receives the parts of an answer, and says whether anybody waits for it.
pub trait Watch {
    /// Takes a part of the answer.
    fn item(&mut self, item: Item);

    /// Takes a report of progress. It comes several times a second.
    fn progress(&mut self, progress: &Progress);

    /// Returns whether somebody waits for the request. It is asked several times a second, and may
    /// take up to a few milliseconds.
    fn interest(&mut self) -> Interest;
}

/// How often the interest in a request is looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Collects items, and waits for ever.
impl Watch for Vec<Item> {
    fn item(&mut self, item: Item) {
        self.push(item);
    }

    fn progress(&mut self, _: &Progress) {}

    fn interest(&mut self) -> Interest {
        Interest::Waiting
    }
}
