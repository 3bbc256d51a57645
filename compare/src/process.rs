//! What this process costs: processor time, bytes written, memory.

mod memory;

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

pub(crate) use memory::MemorySampler;

/// Returns the processor time of all threads since the process began, in seconds.
pub(crate) fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default().as_secs_f64()
}

/// Returns the bytes that the process caused to be written to storage, as counted by the kernel:
/// pages that it dirtied, and direct writes. Zero if the kernel does not report this.
pub(crate) fn storage_bytes_written() -> u64 {
    io_field("write_bytes")
}

/// Returns the bytes that the process passed to `write` and similar calls; writes to mapped files
/// are not included.
pub(crate) fn system_call_bytes_written() -> u64 {
    io_field("wchar")
}

/// Returns the bytes that the process caused to be read from storage.
pub(crate) fn storage_bytes_read() -> u64 {
    io_field("read_bytes")
}

fn io_field(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    field(&text, name).unwrap_or(0)
}

/// Returns the number after `name:` in a file of `/proc`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "wchar: 12\nwrite_bytes: 4096\nVmHWM:\t  77 kB\n";
        assert_eq!(field(text, "write_bytes"), Some(4096));
        assert_eq!(field(text, "VmHWM"), Some(77));
        assert_eq!(field(text, "write"), None);
        assert_eq!(field(text, "read_bytes"), None);
    }

    #[test]
    fn processor_time_counts_work() {
        let before = cpu_seconds();
        // On a busy machine, the loop takes longer than its processor time.
        while cpu_seconds() - before < 0.01 {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn written_bytes_are_counted() {
        use std::io::Write;
        let before = (storage_bytes_written(), system_call_bytes_written());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 1 << 20]).unwrap();
        file.sync_all().unwrap();
        assert!(system_call_bytes_written() - before.1 >= 1 << 20);
        // A file system in memory writes nothing to storage.
        assert!(storage_bytes_written() >= before.0);
    }
}
