//! The part of PromQL that the conditions of docs/operations.md use, over two reports.
//!
//! A condition is a product of metrics, compared with a number: `A / B > 0.5`. A metric is a name,
//! `increase(NAME[1h])`, `rate(NAME[5m])` or `histogram_quantile(0.99, rate(NAME_bucket[5m]))`.

use std::collections::BTreeMap;
use std::time::Duration;

use terrane::Stats;

/// The samples of a report by name with labels, and their sums by name alone.
type Samples = BTreeMap<String, f64>;

pub(crate) fn samples(stats: &Stats) -> Samples {
    let mut samples = Samples::new();
    for line in stats.open_metrics().lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let value: f64 = value.parse().unwrap();
        if let Some((bare, _)) = name.split_once('{') {
            *samples.entry(bare.to_owned()).or_default() += value;
        }
        samples.insert(name.to_owned(), value);
    }
    samples
}

/// Two reports of one database.
pub(crate) struct Window {
    earlier: Samples,
    now: Samples,
    seconds: f64,
}

impl Window {
    pub(crate) fn new(earlier: &Stats, now: &Stats, took: Duration) -> Self {
        Self { earlier: samples(earlier), now: samples(now), seconds: took.as_secs_f64() }
    }

    /// Whether a condition holds at the end of the window.
    pub(crate) fn holds(&self, condition: &str) -> bool {
        let (measured, threshold) = condition.split_once(" > ").unwrap();
        self.product(measured) > threshold.parse::<f64>().unwrap()
    }

    fn product(&self, text: &str) -> f64 {
        match text.rsplit_once(" / ") {
            Some((left, right)) => self.product(left) / self.product(right),
            None => self.metric(text),
        }
    }

    fn metric(&self, text: &str) -> f64 {
        let within = |head: &str| text.strip_prefix(head)?.strip_suffix(')');
        let name = |range: &str| range.split_once('[').unwrap().0.to_owned();
        if let Some(inner) = within("histogram_quantile(") {
            let (part, rate) = inner.split_once(", ").unwrap();
            let range = rate.strip_prefix("rate(").unwrap().strip_suffix(')').unwrap();
            return self.quantile(part.parse().unwrap(), &name(range));
        }
        if let Some(range) = within("increase(") {
            return self.increase(&name(range));
        }
        if let Some(range) = within("rate(") {
            return self.increase(&name(range)) / self.seconds;
        }
        // A metric without a value, such as the age of a tombstone without tombstones.
        self.now.get(text).copied().unwrap_or(f64::NAN)
    }

    fn increase(&self, name: &str) -> f64 {
        let now = self.now.get(name).unwrap_or_else(|| panic!("{name} has no samples"));
        now - self.earlier.get(name).unwrap_or(&0.0)
    }

    /// The bound of the first bucket that covers this share of the new samples.
    fn quantile(&self, part: f64, buckets: &str) -> f64 {
        let head = format!("{buckets}{{le=\"");
        let mut counts: Vec<(f64, f64)> = (self.now.keys())
            .filter_map(|name| Some((name, name.strip_prefix(&head)?.strip_suffix("\"}")?)))
            .map(|(name, bound)| (bound.parse().unwrap(), self.increase(name)))
            .collect();
        counts.sort_by(|left, right| left.0.total_cmp(&right.0));
        let all = counts.last().unwrap().1;
        counts
            .iter()
            .find(|(_, count)| all > 0.0 && *count >= part * all)
            .map_or(f64::NAN, |at| at.0)
    }
}
