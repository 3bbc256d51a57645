//! Events and samples, until the client has enough.

use std::ops::RangeInclusive;
use std::thread;
use std::time::{Duration, Instant};

use terrane::{Db, LoggedEvent, Maintenance};

use crate::failure::Failure;
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

pub(super) fn samples(
    db: &Db,
    interval_millis: u64,
    count: Option<u64>,
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
    let mut left = count;
    while left != Some(0) {
        // A slow client misses samples, so that they do not pile up.
        next = (next + interval).max(Instant::now());
        if !wait_until(next, watch)? {
            break;
        }
        watch.item(Item::Sample(Box::new(sampler.sample())));
        left = left.map(|left| left - 1);
    }
    Ok(Reply::Ended { missed: 0 })
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
