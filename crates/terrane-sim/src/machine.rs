//! What bytes and entries cost.

/// A device and a processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Bytes a second that flushes and merges together may write; `None` for all they can.
    pub budget: Option<f64>,
    /// Where tables are.
    pub device: Device,
    /// What the processor takes.
    pub costs: Costs,
    /// Merges that go on at the same time: the engine's `compaction_threads`.
    pub places: usize,
}

/// A device that reads and writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Device {
    /// Bytes a second, read and written together, of all that use it.
    pub bytes_per_second: f64,
    /// What a request takes beside its bytes, in seconds.
    pub request_seconds: f64,
    /// Bytes of a request.
    pub request_bytes: f64,
    /// Requests that it serves at the same time: as many streams have its full bandwidth.
    pub concurrency: u32,
}

/// What the processor takes, in seconds, and what entries take beside their bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// A write into memtable and log, by one writer.
    pub write_seconds: f64,
    /// An entry of a flush.
    pub flush_seconds: f64,
    /// An entry that goes into a merge.
    pub merge_seconds: f64,
    /// Bytes of an entry in a memtable beside those of key and value.
    pub memtable_entry_bytes: f64,
    /// Bytes of an entry in a table beside those of key and value, filters and index included.
    pub table_entry_bytes: f64,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            budget: None,
            device: Device {
                bytes_per_second: 500e6,
                request_seconds: 100e-6,
                request_bytes: 512.0 * 1024.0,
                concurrency: 4,
            },
            costs: Costs {
                write_seconds: 1.5e-6,
                flush_seconds: 0.5e-6,
                merge_seconds: 0.6e-6,
                memtable_entry_bytes: 40.0,
                table_entry_bytes: 13.0,
            },
            places: 2,
        }
    }
}

impl Device {
    /// What one job alone gets of it, one request after another.
    fn stream(&self) -> f64 {
        let alone = self.bytes_per_second / f64::from(self.concurrency.max(1));
        let full = self.request_bytes
            / (self.request_seconds + self.request_bytes / self.bytes_per_second);
        full.max(alone).min(self.bytes_per_second)
    }
}

/// What a job takes in all.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Work {
    pub(crate) read_bytes: f64,
    pub(crate) written_bytes: f64,
    pub(crate) processor_seconds: f64,
}

impl Work {
    fn moved_bytes(&self) -> f64 {
        self.read_bytes + self.written_bytes
    }

    /// The part of the work that is done in a second, with so much of the processor, and no more
    /// than so many bytes a second written or moved.
    fn rate(&self, processor: f64, written: f64, moved: f64) -> f64 {
        let over =
            |limit: f64, amount: f64| if amount > 0.0 { limit / amount } else { f64::INFINITY };
        over(processor, self.processor_seconds)
            .min(over(written, self.written_bytes))
            .min(over(moved, self.moved_bytes()))
    }
}

impl Machine {
    /// The parts of a flush and of merges that are done in a second: the flush takes what it needs,
    /// the merges have shares of what is left.
    pub(crate) fn rates(&self, flush: Option<&Work>, merges: &[(Work, f64)]) -> (f64, Vec<f64>) {
        let budget = self.budget.unwrap_or(f64::INFINITY);
        let device = self.device.bytes_per_second;
        let stream = self.device.stream();
        let flushed = flush.map_or(0.0, |work| work.rate(1.0, budget, stream));
        let (taken, moved) = flush.map_or((0.0, 0.0), |work| {
            (work.written_bytes * flushed, work.moved_bytes() * flushed)
        });
        // A flush that takes all leaves a little: the engine's gate lets merges end their piece.
        let left = (budget - taken).max(budget.min(device) * 1e-3);
        let free = (device - moved).max(device * 1e-3);
        let rate = |&(work, share): &(Work, f64)| {
            if share <= 0.0 {
                return 0.0;
            }
            let processor = (share * self.places.max(1) as f64).min(1.0);
            work.rate(processor, share * left, (share * free).min(stream))
        };
        (flushed, merges.iter().map(rate).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_go_before_merges_and_shares_are_of_what_is_left() {
        let machine = Machine {
            budget: Some(100.0),
            device: Device {
                bytes_per_second: 1e9,
                request_seconds: 0.0,
                request_bytes: 1.0,
                concurrency: 1,
            },
            ..Machine::default()
        };
        let work = |written| Work { written_bytes: written, ..Work::default() };
        let (_, merges) = machine.rates(None, &[(work(100.0), 0.25), (work(100.0), 0.75)]);
        assert_eq!(merges, [0.25, 0.75]);
        let slow = Work { written_bytes: 60.0, processor_seconds: 1.0, ..Work::default() };
        let (flush, merges) = machine.rates(Some(&slow), &[(work(100.0), 1.0), (work(1.0), 0.0)]);
        assert_eq!((flush, merges), (1.0, vec![0.4, 0.0]));
    }

    #[test]
    fn one_stream_has_what_requests_one_after_another_leave() {
        let device = Device {
            bytes_per_second: 100.0,
            request_seconds: 1.0,
            request_bytes: 100.0,
            concurrency: 4,
        };
        assert_eq!(device.stream(), 50.0);
    }
}
