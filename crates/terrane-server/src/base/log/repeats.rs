//! Holds repeated lines back, and counts them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tracing::Level;

/// The time for which lines like a printed one are held back.
const INTERVAL: Duration = Duration::from_secs(10);

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) level: Level,
    pub(super) kind: &'static str,
    /// Lines of one kind about one subject, such as a keyspace, are alike.
    pub(super) subject: String,
    pub(super) text: String,
}

/// A line with the number of lines that it stands for.
pub(super) type Counted = (Line, u64);

/// The lines that were printed in the last seconds, and those like them since.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    recent: HashMap<(&'static str, String), Recent>,
}

#[derive(Debug)]
struct Recent {
    printed: Instant,
    /// The last line that was held back, with the number of them.
    held: Option<Counted>,
}

impl Repeats {
    /// Returns the line if it is to be printed now, and holds it back otherwise.
    pub(super) fn offer(&mut self, line: Line, now: Instant) -> Option<Counted> {
        let key = (line.kind, line.subject.clone());
        let Some(recent) = self.recent.get_mut(&key) else {
            self.recent.insert(key, Recent { printed: now, held: None });
            return Some((line, 1));
        };
        let times = recent.held.take().map_or(1, |(_, times)| times + 1);
        if now.saturating_duration_since(recent.printed) < INTERVAL {
            recent.held = Some((line, times));
            return None;
        }
        recent.printed = now;
        Some((line, times))
    }

    /// Returns the lines that were held back for the whole interval, and forgets lines without a repetition.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Counted> {
        let mut due = Vec::new();
        self.recent.retain(|_, recent| {
            if now.saturating_duration_since(recent.printed) < INTERVAL {
                return true;
            }
            let held = recent.held.take();
            let is_repeated = held.is_some();
            due.extend(held);
            recent.printed = now;
            is_repeated
        });
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(subject: &str, text: &str) -> Line {
        Line { level: Level::WARN, kind: "x", subject: subject.into(), text: text.into() }
    }

    #[test]
    fn a_repeated_line_is_printed_once_in_an_interval_with_its_count() {
        let (mut repeats, start) = (Repeats::default(), Instant::now());
        let after = |millis| start + Duration::from_millis(millis);
        assert_eq!(repeats.offer(line("a", "1"), start), Some((line("a", "1"), 1)));
        assert_eq!(repeats.offer(line("a", "2"), after(1)), None);
        assert_eq!(repeats.offer(line("b", "1"), after(1)), Some((line("b", "1"), 1)));
        assert_eq!(repeats.offer(line("a", "3"), after(2)), None);
        assert!(repeats.due(after(9_999)).is_empty());
        // The last one is printed although none follows.
        assert_eq!(repeats.due(after(10_002)), [(line("a", "3"), 2)]);
        assert_eq!(repeats.offer(line("a", "4"), after(10_003)), None);
        assert_eq!(repeats.offer(line("a", "5"), after(20_100)), Some((line("a", "5"), 2)));
        assert!(repeats.due(after(40_000)).is_empty() && repeats.recent.is_empty());
    }
}
