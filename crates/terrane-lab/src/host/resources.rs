//! Resource usage of processes, from Linux's `/proc`; unknown on other systems.

use std::fs;

/// The unit in which Linux reports processor time (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Resets the peak of resident memory if the kernel supports it; otherwise the peak covers the
/// whole life of the process.
pub fn reset_peak_memory() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Returns the peak of resident memory in bytes.
pub fn peak_memory_bytes() -> Option<u64> {
    peak_of(&fs::read_to_string("/proc/self/status").ok()?)
}

fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Returns the processor time of all threads since the start of the process, in seconds.
pub fn processor_seconds() -> Option<f64> {
    processor_seconds_of(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// Returns the processor time of all threads of another process since its start, in seconds.
pub fn processor_seconds_of_process(id: u32) -> Option<f64> {
    processor_seconds_of(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// Returns the five-minute load average.
pub fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').nth(1)?.parse().ok()
}

fn processor_seconds_of(stat: &str) -> Option<f64> {
    // Field 2 is the name in parentheses, which may contain blanks and parentheses. Field 3 follows
    // it; user and system time are fields 14 and 15.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse().ok()?;
    let ticks = ticks + fields.next()?.parse::<u64>().ok()?;
    Some(ticks as f64 / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_for_any_process_name() {
        let stat = "42 (a) b ) R 1 42 42 0 -1 4194304 500 0 0 0 150 50 0 0 20 0 4 0 1000";
        assert_eq!(processor_seconds_of(stat), Some(2.0));
        assert_eq!(processor_seconds_of("nonsense"), None);
        assert_eq!(peak_of("Name:\tx\nVmHWM:\t   12 kB\n"), Some(12_288));
        assert_eq!(peak_of("Name:\tx\n"), None);
    }
}
