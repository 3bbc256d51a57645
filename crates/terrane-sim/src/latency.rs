//! Latencies of writes.
//!
//! Writes are a fluid: between two events they arrive and complete at constant rates, so the
//! latency of the n-th write is linear in n. Percentiles over these lines are exact to the
//! precision of a binary search, and cost the same for a billion writes as for one.

/// The latencies of writes, as a piecewise linear function.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    lines: Vec<LatencyLine>,
    count: f64,
}

/// `count` writes with latencies evenly distributed from `low` to `high` seconds.
#[derive(Debug, Clone, Copy)]
struct LatencyLine {
    count: f64,
    low: f64,
    high: f64,
}

/// Counts the writes slower than a bound while lines are added to the latencies.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SlowWrites {
    /// The number of counted lines, which will not change.
    lines: usize,
    /// The number of slow writes on these lines.
    count: f64,
}

impl SlowWrites {
    /// Returns the number of writes that took longer than `bound` seconds. The bound must be the same
    /// in every call.
    pub(crate) fn update(&mut self, latencies: &Latencies, bound: f64) -> f64 {
        let slow = |line: &LatencyLine| line.count * (1.0 - line.part_up_to(bound));
        let Some((last, before)) = latencies.lines.split_last() else { return 0.0 };
        self.count += before.iter().skip(self.lines).map(slow).sum::<f64>();
        self.lines = before.len();
        self.count + slow(last)
    }
}

impl LatencyLine {
    /// Returns the share of the writes that took at most `latency`.
    fn part_up_to(&self, latency: f64) -> f64 {
        if latency >= self.high {
            1.0
        } else if latency < self.low {
            0.0
        } else {
            (latency - self.low) / (self.high - self.low)
        }
    }
}

impl Latencies {
    /// Adds writes whose latencies change linearly from `first` to `last` seconds.
    pub(crate) fn add(&mut self, count: f64, first: f64, last: f64) {
        if count <= 0.0 {
            return;
        }
        let (low, high) = (first.min(last).max(0.0), first.max(last).max(0.0));
        self.count += count;
        if let Some(line) = self.lines.last_mut()
            && (line.low, line.high) == (low, high)
        {
            line.count += count;
            return;
        }
        self.lines.push(LatencyLine { count, low, high });
    }

    /// Returns the number of writes.
    pub fn count(&self) -> f64 {
        self.count
    }

    /// Returns the latency, in seconds, that this fraction of the writes does not exceed; 1 gives
    /// the maximum. `None` without writes.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let longest = self.lines.iter().map(|line| line.high).reduce(f64::max)?;
        if part >= 1.0 {
            return Some(longest);
        }
        let wanted = part * self.count;
        let (mut below, mut above) = (0.0, longest);
        for _ in 0..60 {
            let middle = f64::midpoint(below, above);
            if self.up_to(middle) >= wanted { above = middle } else { below = middle }
        }
        Some(above)
    }

    /// Returns the mean in seconds; `None` without writes.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 =
            self.lines.iter().map(|line| line.count * f64::midpoint(line.low, line.high)).sum();
        (self.count > 0.0).then(|| sum / self.count)
    }

    /// Returns the number of writes that took at most `latency`.
    fn up_to(&self, latency: f64) -> f64 {
        self.lines.iter().map(|line| line.count * line.part_up_to(latency)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_writes_are_counted_once_while_lines_are_added() {
        let (mut all, mut slow) = (Latencies::default(), SlowWrites::default());
        assert_eq!(slow.update(&all, 1.0), 0.0);
        all.add(100.0, 2.0, 0.0);
        assert!((slow.update(&all, 1.0) - 50.0).abs() < 1e-9);
        // The last line grows, then others follow.
        all.add(20.0, 0.0, 2.0);
        assert!((slow.update(&all, 1.0) - 60.0).abs() < 1e-9);
        all.add(7.0, 3.0, 3.0);
        all.add(900.0, 0.5, 0.5);
        assert!((slow.update(&all, 1.0) - 67.0).abs() < 1e-9);
        assert!((slow.update(&all, 1.0) - 67.0).abs() < 1e-9);
    }

    #[test]
    fn percentiles_interpolate_within_lines() {
        let mut all = Latencies::default();
        all.add(900.0, 0.001, 0.001);
        all.add(100.0, 2.0, 0.0);
        let quantile = |part| all.quantile(part).unwrap();
        assert!((quantile(0.5) - 0.001).abs() < 1e-9);
        assert!((quantile(0.95) - 1.0).abs() < 1e-6);
        assert!((quantile(1.0) - 2.0).abs() < 1e-12);
        assert!((all.mean().unwrap() - 0.1009).abs() < 1e-9);
        let none = Latencies::default();
        assert_eq!((none.quantile(0.99), none.quantile(1.0), none.mean()), (None, None, None));
    }
}
