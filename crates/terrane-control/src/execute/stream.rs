//! Events and samples, until the client has enough.

use std::ops::RangeInclusive;
use std::thread;
use std::time::{Duration, Instant};

use terrane::{Db, LoggedEvent, Maintenance};

use crate::failure::Failure;
use crate::follower::TableFollower;
use crate::protocol::{EventItem, Item, Reply};
use crate::sampler::Sampler;
use crate::watch::{Interest, LOOK_EVERY, Watch};

/// The intervals between samples that a client may choose, in milliseconds.
const INTERVALS: RangeInclusive<u64> = 100..=3_600_000;

/// The interval between checks for new events.
const EVENTS_EVERY: Duration = Duration::from_millis(100);

/// Waits until a time. Returns false if the client has enough.
fn wait_until(time: Instant, watch: &mut dyn Watch) -> Result<bool, Failure> {
    loop {
        match watch.interest() {
            Interest::Waiting => {}
            Interest::Cancelled | Interest::Gone => return Ok(false),
            Interest::Closing => return Err(Failure::closed()),
        }
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(true);
        }
        thread::sleep(left.min(LOOK_EVERY));
    }
}

/// Sends samples at an interval, until a number of them if there is one.
pub(super) fn samples(
    db: &Db,
    (interval_millis, count): (u64, Option<u64>),
    with_details: bool,
    watch: &mut dyn Watch,
) -> Result<Reply, Failure> {
    if !INTERVALS.contains(&interval_millis) {
        let (least, most) = (INTERVALS.start(), INTERVALS.end());
        let text = format!(
            "an interval of {interval_millis} ms between samples is outside of {least} to {most} ms"
        );
        return Err(Failure::invalid(text));
    }
    let interval = Duration::from_millis(interval_millis);
    let (mut sampler, mut next) = (Sampler::new(db), Instant::now());
    let mut details = with_details.then(Details::default);
    let (mut left, mut missed) = (count, 0);
    while left != Some(0) {
        // A slow client misses samples, so that they do not pile up.
        next = (next + interval).max(Instant::now());
        if !wait_until(next, watch)? {
            break;
        }
        if let Some(details) = &mut details {
            missed += details.send(db, watch);
        }
        watch.item(Item::Sample(Box::new(sampler.sample())));
        left = left.map(|left| left - 1);
    }
    Ok(Reply::Ended { missed })
}

/// What a client has received besides samples.
#[derive(Default)]
struct Details {
    tables: TableFollower,
    /// The number of the last event.
    seen: u64,
}

impl Details {
    /// Sends what is new, and returns the number of events that were dropped before they could be sent.
    fn send(&mut self, db: &Db, watch: &mut dyn Watch) -> u64 {
        let events = Maintenance::of(db).events_after(self.seen);
        let first = events.first().map_or(0, |event| event.number);
        // The first ones of all may be older than the client.
        let missed = if self.seen > 0 && first > 0 { first - self.seen - 1 } else { 0 };
        self.seen = events.last().map_or(self.seen, |event| event.number);
        if let Some(changes) = self.tables.changes(db) {
            watch.item(Item::Tables(Box::new(changes)));
        }
        for event in &events {
            watch.item(Item::Event(EventItem::of(event)));
        }
        missed
    }
}

impl EventItem {
    /// Returns an event in this form.
    pub fn of(logged: &LoggedEvent) -> Self {
        let details = serde_json::to_value(logged).unwrap_or_default();
        let event = details.get("event").and_then(|name| name.as_str()).unwrap_or("other");
        Self {
            number: logged.number,
            at_micros: logged.at_micros,
            event: event.to_owned(),
            text: logged.event.to_string(),
            details,
        }
    }
}

pub(super) fn events(
    db: &Db,
    last: Option<u64>,
    follow: bool,
    watch: &mut dyn Watch,
) -> Result<Reply, Failure> {
    let maintenance = Maintenance::of(db);
    let mut kept = maintenance.events_after(0);
    let mut seen = kept.last().map_or(0, |event| event.number);
    if let Some(last) = last {
        let skipped = kept.len().saturating_sub(usize::try_from(last).unwrap_or(usize::MAX));
        kept.drain(..skipped);
    }
    let mut missed = 0;
    loop {
        for event in &kept {
            watch.item(Item::Event(EventItem::of(event)));
        }
        if !follow || !wait_until(Instant::now() + EVENTS_EVERY, watch)? {
            return Ok(Reply::Ended { missed });
        }
        kept = maintenance.events_after(seen);
        if let (Some(first), Some(newest)) = (kept.first(), kept.last()) {
            missed += first.number - seen - 1;
            seen = newest.number;
        }
    }
}
