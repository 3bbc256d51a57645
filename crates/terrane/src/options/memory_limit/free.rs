//! How much of the memory that a process may take is left.
//!
//! Each limit leaves what others below it have not taken: the machine what the kernel states as available, a
//! control group what its processes use beside the page cache, which the kernel reclaims, and a resource
//! limit what the process has not mapped.

#[cfg(target_os = "linux")]
use std::path::PathBuf;

/// What a limit leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FreeMemory {
    /// The bytes that processes can still take.
    pub(crate) bytes: u64,
    /// The limit in bytes.
    pub(crate) limit: u64,
    /// The file or the name of the limit.
    pub(crate) source: String,
}

/// Reads what the limits of this process leave.
#[derive(Debug, Default)]
pub(crate) struct MemoryGauge {
    /// The files with the limits of the control groups above the process.
    #[cfg(target_os = "linux")]
    limit_files: Vec<PathBuf>,
}

impl MemoryGauge {
    /// Finds the control groups of this process, in which it usually stays.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_process() -> Self {
        Self { limit_files: super::limit_files() }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of_process() -> Self {
        Self::default()
    }

    /// Returns what every limit leaves now; `None` if it cannot be read, for example because the process may
    /// open no more files.
    pub(crate) fn read(&self) -> Option<Vec<FreeMemory>> {
        // The interpreter Miri does not have the system calls.
        if cfg!(miri) {
            return None;
        }
        let of_system = self.free_of_system()?;
        Some(super::free_of_resource_limits().into_iter().chain(of_system).collect())
    }

    #[cfg(target_os = "linux")]
    fn free_of_system(&self) -> Option<Vec<FreeMemory>> {
        use super::{read_system_file, system};
        let group = |path: &PathBuf| {
            let limit = system::parse_limit(&read_system_file(path))?;
            let files = system::usage_files(path)?;
            let (usage, stat) = (read_system_file(files.usage), read_system_file(files.stat));
            let bytes = limit.saturating_sub(system::unreclaimable(&usage, &stat, files.prefix)?);
            Some(FreeMemory { bytes, limit, source: path.display().to_string() })
        };
        let meminfo = read_system_file("/proc/meminfo");
        let machine = system::parse_machine_memory(&meminfo)
            .zip(system::parse_available_memory(&meminfo))
            .map(|(limit, bytes)| FreeMemory { bytes, limit, source: super::MACHINE.to_owned() });
        // Without this file the others could not be read either.
        let machine = Some(machine).filter(|_| !meminfo.is_empty())?;
        Some(self.limit_files.iter().filter_map(group).chain(machine).collect())
    }

    #[cfg(not(target_os = "linux"))]
    fn free_of_system(&self) -> Option<Vec<FreeMemory>> {
        Some(Vec::new())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_machine_states_what_is_free() {
        let free = MemoryGauge::of_process().read().unwrap();
        assert!(!free.is_empty());
        for FreeMemory { bytes, limit, source } in free {
            assert!(bytes <= limit && limit > 1 << 20, "{source}: {bytes} of {limit}");
        }
    }
}
