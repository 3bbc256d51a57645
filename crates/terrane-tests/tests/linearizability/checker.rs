//! Decides whether a recorded history is linearizable (Wing and Gong 1993, with the memoization of
//! Lowe 2017).
//!
//! The checker looks for an order of the operations that respects their times and explains every
//! read. A read that can come next and agrees with the state comes next, because it changes nothing
//! and delaying it helps no other operation; so only concurrent writes are tried in several orders.

use std::collections::HashSet;

/// The values of all keys; `None` for a key without a value.
pub type State = Vec<Option<u64>>;

/// What an operation wrote or found, for the keys that it touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Write(Vec<(usize, Option<u64>)>),
    Read(Vec<(usize, Option<u64>)>),
}

impl Action {
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Read(_))
    }

    fn pairs(&self) -> &[(usize, Option<u64>)] {
        match self {
            Self::Write(pairs) | Self::Read(pairs) => pairs,
        }
    }
}

/// An operation, from a moment before it began to a moment after it ended. All moments differ.
#[derive(Debug, Clone)]
pub struct Event {
    pub begin: u64,
    pub end: u64,
    pub action: Action,
}

/// The operations that are in the order so far, and the state after them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Prefix {
    done: Vec<u64>,
    state: State,
}

impl Prefix {
    fn is_done(&self, index: usize) -> bool {
        self.done[index / 64] >> (index % 64) & 1 == 1
    }

    /// Appends an operation. Returns false if it is a read that the state does not explain.
    fn append(&mut self, index: usize, action: &Action) -> bool {
        match action {
            Action::Write(pairs) => pairs.iter().for_each(|&(key, value)| self.state[key] = value),
            Action::Read(pairs) => {
                if pairs.iter().any(|&(key, value)| self.state[key] != value) {
                    return false;
                }
            }
        }
        self.done[index / 64] |= 1 << (index % 64);
        true
    }
}

/// Returns the operations that can come next: those that began before the first of the remaining
/// operations ended. `events` are in the order of their begins.
fn candidates(events: &[Event], prefix: &Prefix) -> Vec<usize> {
    let mut first_end = u64::MAX;
    let mut found = Vec::new();
    for (index, event) in events.iter().enumerate() {
        if event.begin > first_end {
            break;
        }
        if !prefix.is_done(index) {
            first_end = first_end.min(event.end);
            found.push(index);
        }
    }
    found.retain(|&index| events[index].begin < first_end);
    found
}

/// Returns true if some order of the events explains every read of `keys` keys, which have no values
/// at the start.
pub fn is_linearizable(events: &[Event], keys: usize) -> bool {
    let mut events = events.to_vec();
    events.sort_by_key(|event| event.begin);
    let done = vec![0; events.len().div_ceil(64)];
    let mut stack = vec![Prefix { done, state: vec![None; keys] }];
    let mut tried = HashSet::new();
    while let Some(mut prefix) = stack.pop() {
        let next = loop {
            let next = candidates(&events, &prefix);
            let read = next.iter().copied().find(|&index| {
                let action = &events[index].action;
                action.is_read() && prefix.append(index, action)
            });
            if read.is_none() {
                break next;
            }
        };
        if next.is_empty() {
            return true;
        }
        if !tried.insert(prefix.clone()) {
            continue;
        }
        for index in next.into_iter().filter(|&index| !events[index].action.is_read()) {
            let mut longer = prefix.clone();
            longer.append(index, &events[index].action);
            stack.push(longer);
        }
    }
    false
}

/// Reduces the events to one key: returns their effects on it, as events of that key alone.
pub fn events_of_key(events: &[Event], key: usize) -> Vec<Event> {
    let of_key = events.iter().filter_map(|event| {
        let (_, value) = *event.action.pairs().iter().find(|(other, _)| *other == key)?;
        let pairs = vec![(0, value)];
        let is_read = event.action.is_read();
        let action = if is_read { Action::Read(pairs) } else { Action::Write(pairs) };
        Some(Event { action, ..*event })
    });
    of_key.collect()
}

/// Returns the number of events that overlap another event in time.
pub fn overlapping(events: &[Event]) -> usize {
    let mut events: Vec<(u64, u64)> = events.iter().map(|event| (event.begin, event.end)).collect();
    events.sort_unstable();
    let mut last_end = None;
    let mut count = 0;
    for (index, &(begin, end)) in events.iter().enumerate() {
        let is_before_next = events.get(index + 1).is_some_and(|next| next.0 < end);
        count += usize::from(is_before_next || last_end.is_some_and(|last| last > begin));
        last_end = last_end.max(Some(end));
    }
    count
}

#[test]
fn the_checker_knows_right_from_wrong() {
    let event = |begin, end, action| Event { begin, end, action };
    let put = |value| Action::Write(vec![(0, Some(value))]);
    let read = |value| Action::Read(vec![(0, value)]);
    let check = |events: &[Event]| is_linearizable(events, 1);
    assert!(check(&[event(0, 1, put(1)), event(2, 3, read(Some(1)))]));
    assert!(!check(&[event(0, 1, put(1)), event(2, 3, read(None))]));
    let during = |first, second| {
        check(&[event(0, 5, put(1)), event(1, 2, read(first)), event(3, 4, read(second))])
    };
    assert!(during(None, Some(1)) && during(Some(1), Some(1)) && during(None, None));
    assert!(!during(Some(1), None));
    // Two concurrent writes may take effect in either order, but all readers must see the same
    // order.
    let writes = [event(0, 9, put(1)), event(1, 8, put(2))];
    let seen =
        |a, b| check(&[&writes[..], &[event(10, 11, read(a)), event(12, 13, read(b))]].concat());
    assert!(seen(Some(1), Some(1)) && seen(Some(2), Some(2)));
    assert!(!seen(Some(1), Some(2)) && !seen(None, None));
}

#[test]
fn the_checker_sees_half_a_batch() {
    let event = |begin, end, action| Event { begin, end, action };
    let batch = Action::Write(vec![(0, Some(1)), (1, Some(1))]);
    let read = |a, b| Action::Read(vec![(0, a), (1, b)]);
    for (found, is_right) in [
        (read(None, None), true),
        (read(Some(1), Some(1)), true),
        (read(Some(1), None), false),
        (read(None, Some(1)), false),
    ] {
        let events = [event(0, 3, batch.clone()), event(1, 2, found)];
        assert_eq!(is_linearizable(&events, 2), is_right, "{events:?}");
        // Each key alone is explained in every case.
        assert!((0..2).all(|key| is_linearizable(&events_of_key(&events, key), 1)));
    }
}

#[test]
fn overlapping_events_are_counted() {
    let event = |begin, end| Event { begin, end, action: Action::Read(vec![]) };
    assert_eq!(overlapping(&[event(0, 1), event(2, 3)]), 0);
    assert_eq!(overlapping(&[event(0, 9), event(2, 3), event(4, 5), event(10, 11)]), 3);
}
