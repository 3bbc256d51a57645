//! The memory that the operating system allows the process.
//!
//! Linux enforces the limits of every control group above a process: exceeding one ends the process,
//! although the machine has free memory. Containers and service managers limit memory this way.
//! `RLIMIT_AS` and `RLIMIT_DATA` make allocations fail instead. Limits can change at any time, so every
//! opening reads them anew.

#[cfg(target_os = "linux")]
mod cgroup;

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
/// the machine, the limits of the control groups above the process (Linux), `RLIMIT_AS` and `RLIMIT_DATA`.
/// `None` if it reports none of them.
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

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn resource_limits() -> Vec<MemoryLimit> {
    use rustix::process::{Resource, getrlimit};
    let limits = [(Resource::As, "RLIMIT_AS"), (Resource::Data, "RLIMIT_DATA")];
    let limit = |(resource, name)| Some(MemoryLimit::new(getrlimit(resource).current?, name));
    limits.into_iter().filter_map(limit).collect()
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn resource_limits() -> Vec<MemoryLimit> {
    Vec::new()
}

/// Returns the limits of the control groups above this process, and the memory of the machine.
#[cfg(target_os = "linux")]
#[allow(
    clippy::disallowed_methods,
    reason = "the files of /proc and of control groups are no data"
)]
fn system_limits() -> Vec<MemoryLimit> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let files = cgroup::limit_files(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"));
    let limit = |path: std::path::PathBuf| {
        let bytes = cgroup::parse_limit(&std::fs::read_to_string(&path).ok()?)?;
        Some(MemoryLimit::new(bytes, path.display().to_string()))
    };
    let machine = cgroup::parse_machine_memory(&read("/proc/meminfo"));
    let machine = machine.map(|bytes| MemoryLimit::new(bytes, "the memory of the machine"));
    files.into_iter().filter_map(limit).chain(machine).collect()
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
