//! The receiver of an answer: a client at a socket, or a person at a terminal.

use std::time::Duration;

use crate::protocol::{Item, Progress};

/// Whether a client still waits for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interest {
    /// The client waits for it.
    Waiting,
    /// The client has cancelled it, and waits for its end.
    Cancelled,
    /// No client waits for it any longer.
    Gone,
    /// The database is being closed.
    Closing,
}

/// Receives the parts of an answer, and reports whether a client waits for it.
pub trait Watch {
    /// Receives a part of the answer.
    fn item(&mut self, item: Item);

    /// Receives a progress report, several times a second.
    fn progress(&mut self, progress: &Progress);

    /// Returns whether a client waits for the request. Called several times a second; may take up
    /// to a few milliseconds.
    fn interest(&mut self) -> Interest;
}

/// The interval between checks of the interest in a request.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Collects items, and never cancels.
impl Watch for Vec<Item> {
    fn item(&mut self, item: Item) {
        self.push(item);
    }

    fn progress(&mut self, _: &Progress) {}

    fn interest(&mut self) -> Interest {
        Interest::Waiting
    }
}
