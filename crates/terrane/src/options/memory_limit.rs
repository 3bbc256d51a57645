//! The memory that the operating system allows the process.
//!
//! Linux enforces the limits of every control group above a process: exceeding one ends the process,
//! although the machine has free memory. Containers and service managers limit memory this way.
//! `RLIMIT_AS` and `RLIMIT_DATA` make allocations fail instead. Limits can change at any time, so every
//! opening reads them anew.

mod free;
#[cfg(target_os = "linux")]
mod system;

pub(crate) use free::{FreeMemory, MemoryGauge};

/// The default of `memory_budget` if the limit is unknown, or large enough for half of it to be as much and
/// a quarter of it not to be more.
pub(super) const USUAL_BUDGET: u64 = 512 << 20;

/// The source of the limit that is the memory of the machine.
#[cfg(target_os = "linux")]
const MACHINE: &str = "the memory of the machine";

/// The smallest valid budget.
const BUDGET_MIN: u64 = 1 << 20;

/// The largest default: the largest valid budget, or less where addresses are short.
const DEFAULT_MAX: u64 = if usize::BITS < 64 { USUAL_BUDGET } else { 1 << 40 };

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
/// The default of [`Options::memory_budget`](crate::Options::memory_budget) is half of it up to 1 GiB, then
/// 512 MiB, and from 2 GiB on a quarter of it. A program can divide the rest among its own buffers.
#[must_use]
pub fn memory_limit() -> Option<u64> {
    smallest_limit().map(|limit| limit.bytes)
}

/// Returns the default of `memory_budget`: half of the smallest limit, but at most [`USUAL_BUDGET`], or a
/// quarter of the limit if that is more. The rest is left to the application and to the page cache.
pub(super) fn default_budget() -> u64 {
    budget_within(memory_limit())
}

/// Returns the default for a process with this limit, in whole MiB.
fn budget_within(limit: Option<u64>) -> u64 {
    let share = limit.map_or(USUAL_BUDGET, |bytes| (bytes / 2).min(USUAL_BUDGET.max(bytes / 4)));
    share.clamp(BUDGET_MIN, DEFAULT_MAX) & !(BUDGET_MIN - 1)
}

/// Returns what the resource limits leave to this process. They count all private memory that it has
/// mapped, touched or not: 90 MiB for a Python program before it opens a database.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn resource_limits() -> Vec<MemoryLimit> {
    let rest =
        |free: FreeMemory| MemoryLimit::new(free.bytes, format!("the rest of {}", free.source));
    free_of_resource_limits().into_iter().map(rest).collect()
}

/// Returns what each resource limit leaves.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn free_of_resource_limits() -> Vec<FreeMemory> {
    use rustix::process::{Resource, getrlimit};
    let (addresses, data) = mapped_bytes();
    let limits = [(Resource::As, addresses, "RLIMIT_AS"), (Resource::Data, data, "RLIMIT_DATA")];
    let free = |(resource, mapped, name): (_, _, &str)| {
        let limit = getrlimit(resource).current?;
        Some(FreeMemory { bytes: limit.saturating_sub(mapped), limit, source: name.to_owned() })
    };
    limits.into_iter().filter_map(free).collect()
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

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn free_of_resource_limits() -> Vec<FreeMemory> {
    Vec::new()
}

/// Returns the limits of the control groups above this process, and the memory of the machine.
#[cfg(target_os = "linux")]
fn system_limits() -> Vec<MemoryLimit> {
    let limit = |path: std::path::PathBuf| {
        let bytes = system::parse_limit(&read_system_file(&path))?;
        Some(MemoryLimit::new(bytes, path.display().to_string()))
    };
    let machine = system::parse_machine_memory(&read_system_file("/proc/meminfo"));
    let machine = machine.map(|bytes| MemoryLimit::new(bytes, MACHINE));
    limit_files().into_iter().filter_map(limit).chain(machine).collect()
}

/// Returns the files with the limits of the control groups above this process.
#[cfg(target_os = "linux")]
fn limit_files() -> Vec<std::path::PathBuf> {
    system::limit_files(
        &read_system_file("/proc/self/cgroup"),
        &read_system_file("/proc/self/mountinfo"),
    )
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
    fn the_default_budget_is_a_share_of_the_limit() {
        assert_eq!(budget_within(None), 512 << 20);
        assert_eq!(budget_within(Some(u64::MAX)), 1 << 40);
        assert_eq!(budget_within(Some(16 << 30)), 4 << 30);
        assert_eq!(budget_within(Some(2 << 30)), 512 << 20);
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
