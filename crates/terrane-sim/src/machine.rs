//! The costs of bytes and entries on a machine.

/// A device and a processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineModel {
    /// The limit on bytes per second that flushes and merges write together; `None` is unlimited.
    pub budget: Option<f64>,
    /// True if reads from the device also count against the budget.
    pub budget_includes_reads: bool,
    /// The device that stores the tables.
    pub device: Device,
    /// Processor times and overheads per entry.
    pub costs: MachineCosts,
    /// The number of concurrent merges: the engine's `compaction_threads`.
    pub slots: usize,
}

/// A storage device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Device {
    /// The total bandwidth of reads and writes, in bytes per second.
    pub bytes_per_second: f64,
    /// The latency of a request without the transfer of its bytes, in seconds.
    pub request_seconds: f64,
    /// The number of bytes that a request transfers.
    pub request_bytes: f64,
    /// The number of requests that the device serves concurrently; this many streams saturate it.
    pub concurrency: u32,
}

/// Processor times in seconds, and overheads in bytes, per entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineCosts {
    /// The time of one writer to write an entry into the log and the memtable.
    pub write_seconds: f64,
    /// The time per entry of a flush.
    pub flush_seconds: f64,
    /// The time per input entry of a merge.
    pub merge_seconds: f64,
    /// The bytes per entry of a memtable in addition to key and value.
    pub memtable_entry_bytes: f64,
    /// The bytes per entry of a table in addition to key and value, filter and index included.
    pub table_entry_bytes: f64,
    /// The bytes per tombstone of a table in addition to its key; negative if key compression saves
    /// more than that.
    pub table_tombstone_bytes: f64,
}

impl Default for MachineModel {
    fn default() -> Self {
        Self {
            budget: None,
            budget_includes_reads: false,
            device: Device {
                bytes_per_second: 500e6,
                request_seconds: 100e-6,
                request_bytes: 512.0 * 1024.0,
                concurrency: 4,
            },
            costs: MachineCosts {
                write_seconds: 1.5e-6,
                flush_seconds: 0.5e-6,
                merge_seconds: 0.6e-6,
                memtable_entry_bytes: 40.0,
                table_entry_bytes: 13.0,
                table_tombstone_bytes: 0.0,
            },
            slots: 2,
        }
    }
}

impl Device {
    /// Returns the bandwidth of one job that issues one request after another.
    fn stream(&self) -> f64 {
        let alone = self.bytes_per_second / f64::from(self.concurrency.max(1));
        let full = self.request_bytes
            / (self.request_seconds + self.request_bytes / self.bytes_per_second);
        full.max(alone).min(self.bytes_per_second)
    }
}

/// The total cost of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct JobCost {
    pub(crate) read_bytes: f64,
    pub(crate) written_bytes: f64,
    pub(crate) processor_seconds: f64,
}

impl JobCost {
    fn moved_bytes(&self) -> f64 {
        self.read_bytes + self.written_bytes
    }

    /// Returns the fraction of the job done per second, with this share of a processor and these
    /// limits on bytes written, and on bytes read and written, per second.
    fn rate(&self, processor: f64, written: f64, moved: f64) -> f64 {
        let over =
            |limit: f64, amount: f64| if amount > 0.0 { limit / amount } else { f64::INFINITY };
        over(processor, self.processor_seconds)
            .min(over(written, self.written_bytes))
            .min(over(moved, self.moved_bytes()))
    }
}

/// The load of reads on a device.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct DeviceReads {
    pub(crate) requests_per_second: f64,
    pub(crate) bytes_per_second: f64,
}

/// The minimum share of the device that reads leave to flushes and merges: the device serves
/// requests in turn, so many reads also delay each other.
const DEVICE_LEFT_MIN: f64 = 0.05;

impl Device {
    /// Returns the share of the device's time that reads leave.
    fn left_by(&self, reads: &DeviceReads) -> f64 {
        let request = self.request_seconds / f64::from(self.concurrency.max(1));
        let busy =
            reads.requests_per_second * request + reads.bytes_per_second / self.bytes_per_second;
        (1.0 - busy).max(DEVICE_LEFT_MIN)
    }
}

impl MachineModel {
    /// Returns the fractions of flushes and of merges completed per second. Reads take precedence
    /// over both. Flushes precede merges and share the bandwidth equally; merges share the rest.
    pub(crate) fn rates(
        &self,
        flushes: &[JobCost],
        merges: &[(JobCost, f64)],
        reads: DeviceReads,
    ) -> (Vec<f64>, Vec<f64>) {
        let budget = self.budget.unwrap_or(f64::INFINITY);
        let read = if self.budget_includes_reads { reads.bytes_per_second } else { 0.0 };
        let budget = (budget - read).max(budget * DEVICE_LEFT_MIN);
        let left_by_reads = self.device.left_by(&reads);
        let device = self.device.bytes_per_second * left_by_reads;
        let stream = self.device.stream() * left_by_reads;
        let count = flushes.len().max(1) as f64;
        let (written, most) = (budget / count, stream.min(device / count));
        let flush_rate = |work: &JobCost| work.rate(1.0, written, most);
        let flushed: Vec<f64> = flushes.iter().map(flush_rate).collect();
        let per_second = |of: fn(&JobCost) -> f64| -> f64 {
            flushes.iter().zip(&flushed).map(|(work, rate)| of(work) * rate).sum()
        };
        let taken = per_second(|work| work.written_bytes);
        let moved = per_second(JobCost::moved_bytes);
        // Leave some bandwidth to merges, because the engine's gate lets them finish their chunks.
        let left = (budget - taken).max(budget.min(device) * 1e-3);
        let free = (device - moved).max(device * 1e-3);
        let rate = |&(work, share): &(JobCost, f64)| {
            if share <= 0.0 {
                return 0.0;
            }
            let processor = (share * self.slots.max(1) as f64).min(1.0);
            work.rate(processor, share * left, (share * free).min(stream))
        };
        (flushed, merges.iter().map(rate).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_go_first_and_merges_share_the_rest() {
        let machine = MachineModel {
            budget: Some(100.0),
            device: Device {
                bytes_per_second: 1e9,
                request_seconds: 0.0,
                request_bytes: 1.0,
                concurrency: 1,
            },
            ..MachineModel::default()
        };
        let work = |written| JobCost { written_bytes: written, ..JobCost::default() };
        let (_, merges) =
            machine.rates(&[], &[(work(100.0), 0.25), (work(100.0), 0.75)], DeviceReads::default());
        assert_eq!(merges, [0.25, 0.75]);
        let slow = JobCost { written_bytes: 60.0, processor_seconds: 1.0, ..JobCost::default() };
        let (flush, merges) =
            machine.rates(&[slow], &[(work(100.0), 1.0), (work(1.0), 0.0)], DeviceReads::default());
        assert_eq!((flush, merges), (vec![1.0], vec![0.4, 0.0]));
        let (flushes, merges) =
            machine.rates(&[work(100.0), work(50.0)], &[(work(1.0), 1.0)], DeviceReads::default());
        assert_eq!(flushes, [0.5, 1.0]);
        assert!(merges[0] < 0.2, "flushes take all but the remainder: {merges:?}");
    }

    #[test]
    fn reads_take_their_part_of_the_device_and_of_a_shared_budget() {
        let mut machine = MachineModel {
            device: Device {
                bytes_per_second: 100.0,
                request_seconds: 0.1,
                request_bytes: 1e9,
                concurrency: 1,
            },
            ..MachineModel::default()
        };
        let work = JobCost { written_bytes: 100.0, ..JobCost::default() };
        // Half of the time goes to requests, and a quarter to bytes.
        let reads = DeviceReads { requests_per_second: 5.0, bytes_per_second: 25.0 };
        let rate = |machine: &MachineModel| machine.rates(&[], &[(work, 1.0)], reads).1[0];
        assert!((rate(&machine) - 0.25).abs() < 1e-6, "{}", rate(&machine));
        machine.budget = Some(35.0);
        assert!((rate(&machine) - 0.25).abs() < 1e-6);
        machine.budget_includes_reads = true;
        assert!((rate(&machine) - 0.10).abs() < 1e-6, "{}", rate(&machine));
    }

    #[test]
    fn one_stream_pays_the_latency_of_each_request() {
        let device = Device {
            bytes_per_second: 100.0,
            request_seconds: 1.0,
            request_bytes: 100.0,
            concurrency: 4,
        };
        assert_eq!(device.stream(), 50.0);
    }
}
