//! The memory that the operating system allows the process.
//!
//! Linux enforces the limits of every control group above a process: exceeding one ends the process,
//! although the machine has free memory. Containers and service managers limit memory this way.
//! `RLIMIT_AS` and `RLIMIT_DATA` make allocations fail instead. Limits can change at any time, so every
//! opening reads them anew.

#[cfg(target_os = "linux")]
mod system;

/// The largest default of `memory_budget`.
pub(super) const DEFAULT_BUDGET_MAX: u64 = 512 << 20;

/// The smallest valid budget.
const BUDGET_MIN: u64 = 1 << 20;

/// A limit on the memory of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryLimit {
    pub(crate) bytes: u64,
    /// The file or the name of the limit.
    pub(crate) source: String,
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
impl MemoryLimit {
    fn new(bytes: u64, source: impl Into<String>) -> Self {
        Self { bytes, source: source.into() }
    }
}

/// Returns the smallest limit on the memory of this process, if the operating system reports any.
pub(crate) fn smallest_limit() -> Option<MemoryLimit> {
    // The interpreter Miri does not have the system calls.
    if cfg!(miri) {
        return None;
    }
    let limits = resource_limits().into_iter().chain(system_limits());
    limits.min_by_key(|limit| limit.bytes)
}

/// Returns the bytes of memory that the operating system allows this process: the smallest of the memory of
/// the machine, the limits of the control groups above the process (Linux), and what `RLIMIT_AS` and
/// `RLIMIT_DATA` leave beside the memory that the process has mapped (macOS: the two limits). `None` if it
/// reports none of them.
///
/// The default of [`Options::memory_budget`](crate::Options::memory_budget) is half of it, at most 512 MiB. A
/// program can divide the other half among its own buffers.
#[must_use]
pub fn memory_limit() -> Option<u64> {
    smallest_limit().map(|limit| limit.bytes)
}

/// Returns the default of `memory_budget`: half of the smallest limit, which leaves the other half to the
/// application and to the page cache, but at most [`DEFAULT_BUDGET_MAX`].
pub(super) fn default_budget() -> u64 {
    budget_within(memory_limit())
}

/// Returns the default for a process with this limit, in whole MiB.
fn budget_within(limit: Option<u64>) -> u64 {
    let half = limit.map_or(DEFAULT_BUDGET_MAX, |bytes| bytes / 2);
    half.clamp(BUDGET_MIN, DEFAULT_BUDGET_MAX) & !(BUDGET_MIN - 1)
}

/// Returns what the resource limits leave to this process. They count all private memory that it has
/// mapped, touched or not: 90 MiB for a Python program before it opens a database.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn resource_limits() -> Vec<MemoryLimit> {
    use rustix::process::{Resource, getrlimit};
    let (addresses, data) = mapped_bytes();
    let limits = [(Resource::As, addresses, "RLIMIT_AS"), (Resource::Data, data, "RLIMIT_DATA")];
    let limit = |(resource, mapped, name)| {
        let bytes = getrlimit(resource).current?.saturating_sub(mapped);
        Some(MemoryLimit::new(bytes, format!("the rest of {name}")))
    };
    limits.into_iter().filter_map(limit).collect()
}

/// Returns the bytes that this process has mapped, and those that `RLIMIT_DATA` counts.
#[cfg(target_os = "linux")]
fn mapped_bytes() -> (u64, u64) {
    let pages = system::mapped_pages(&read_system_file("/proc/self/statm"));
    let page_bytes = rustix::param::page_size() as u64;
    pages.map_or((0, 0), |(all, data)| (all * page_bytes, data * page_bytes))
}

#[cfg(target_os = "macos")]
fn mapped_bytes() -> (u64, u64) {
    (0, 0)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn resource_limits() -> Vec<MemoryLimit> {
    Vec::new()
}

/// Returns the limits of the control groups above this process, and the memory of the machine.
#[cfg(target_os = "linux")]
fn system_limits() -> Vec<MemoryLimit> {
    let files = system::limit_files(
        &read_system_file("/proc/self/cgroup"),
        &read_system_file("/proc/self/mountinfo"),
    );
    let limit = |path: std::path::PathBuf| {
        let bytes = system::parse_limit(&read_system_file(&path))?;
        Some(MemoryLimit::new(bytes, path.display().to_string()))
    };
    let machine = system::parse_machine_memory(&read_system_file("/proc/meminfo"));
    let machine = machine.map(|bytes| MemoryLimit::new(bytes, "the memory of the machine"));
    files.into_iter().filter_map(limit).chain(machine).collect()
}

/// Returns the contents of a file of the system; nothing if it is missing.
#[cfg(target_os = "linux")]
#[allow(
    clippy::disallowed_methods,
    reason = "the files of /proc and of control groups are no data"
)]
fn read_system_file(path: impl AsRef<std::path::Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
fn system_limits() -> Vec<MemoryLimit> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_budget_is_half_of_the_limit_and_at_most_512_mib() {
        assert_eq!(budget_within(None), 512 << 20);
        assert_eq!(budget_within(Some(u64::MAX)), 512 << 20);
        assert_eq!(budget_within(Some(1 << 30)), 512 << 20);
        assert_eq!(budget_within(Some(256 << 20)), 128 << 20);
        assert_eq!(budget_within(Some(300_000_000)), 143 << 20);
        assert_eq!(budget_within(Some(0)), 1 << 20);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_machine_has_a_limit() {
        let limit = smallest_limit().unwrap();
        assert!(limit.bytes > 1 << 20 && !limit.source.is_empty(), "{limit:?}");
    }
}
