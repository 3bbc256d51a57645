//! A description of the machine, as far as the system reports it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The machine, the file system and the build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// The processor's name.
    pub(crate) processor: String,
    /// The number of processors that the process may use.
    pub(crate) cores: usize,
    /// Memory in bytes.
    pub(crate) memory_bytes: u64,
    /// The kernel's version.
    pub(crate) kernel: String,
    /// The file system that holds the databases: its type, device and options.
    pub(crate) file_system: String,
    /// The frequency governor, if there is one.
    pub(crate) governor: Option<String>,
    /// The compiler.
    pub(crate) rustc: String,
    /// The instruction sets that the build targets; RocksDB selects its code by them.
    pub(crate) target_features: String,
    /// The commit of the checkout, followed by `+` if the checkout has changes.
    pub(crate) commit: Option<String>,
}

impl Machine {
    /// Describes this machine, with the file system of `dir`.
    pub(crate) fn here(dir: &Path) -> Self {
        let governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        Self {
            processor: named(&read("/proc/cpuinfo"), "model name").unwrap_or("unknown").into(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_bytes(&read("/proc/meminfo")),
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            file_system: file_system(&read("/proc/self/mountinfo"), dir),
            governor: fs::read_to_string(governor).ok().map(|text| text.trim().into()),
            rustc: env!("COMPARE_RUSTC").into(),
            target_features: env!("COMPARE_TARGET_FEATURES").into(),
            commit: commit(),
        }
    }

    /// Describes the machine in one line.
    pub(crate) fn summary(&self) -> String {
        let gibibytes = self.memory_bytes as f64 / f64::from(1 << 30);
        let Self { processor, cores, kernel, file_system, rustc, .. } = self;
        format!(
            "{processor}, {cores} cores, {gibibytes:.0} GiB, Linux {kernel}, {file_system}; {rustc}"
        )
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the text after the colon in the first line that begins with `name`.
fn named<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

fn memory_bytes(meminfo: &str) -> u64 {
    const BYTES_PER_KILOBYTE: u64 = 1024;
    let total = named(meminfo, "MemTotal").and_then(|value| value.split(' ').next()?.parse().ok());
    total.unwrap_or(0) * BYTES_PER_KILOBYTE
}

/// Returns the line of `mountinfo` with the longest mount point that contains `dir`.
fn file_system(mountinfo: &str, dir: &Path) -> String {
    let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.into());
    mountinfo
        .lines()
        .filter_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            let point = mount.split(' ').nth(4)?;
            let described = kind.split(' ').take(3).collect::<Vec<_>>().join(" ");
            dir.starts_with(point).then_some((point.len(), described))
        })
        // If mount points are equal, the last one hides the others.
        .max_by_key(|(length, _)| *length)
        .map_or_else(|| "unknown file system".into(), |(_, described)| described)
}

fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(["-C", env!("CARGO_MANIFEST_DIR")])
            .args(arguments)
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    let hash = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_changed = git(&["status", "--porcelain"]).is_none_or(|changes| !changes.is_empty());
    Some(format!("{}{}", hash.trim(), if is_changed { "+" } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_is_that_of_the_longest_mount_point() {
        let mountinfo = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 22 0:25 / /no rw - tmpfs tmpfs rw
31 22 0:26 / /nowhere/at rw shared:1 - xfs /dev/vdb rw,noatime
";
        let of = |dir| file_system(mountinfo, Path::new(dir));
        assert_eq!(of("/nowhere/at/all"), "xfs /dev/vdb rw,noatime");
        assert_eq!(of("/nowhere/atlas"), "ext4 /dev/vda rw,discard");
        assert_eq!(file_system("", Path::new("/")), "unknown file system");
    }

    #[test]
    fn values_are_read_by_name() {
        let text = "MemTotal:       24570304 kB\nMemFree: 1 kB\n";
        assert_eq!(memory_bytes(text), 24_570_304 * 1024);
        assert_eq!(
            named("processor\t: 0\nmodel name\t: AMD EPYC\n", "model name"),
            Some("AMD EPYC")
        );
        assert!(Machine::here(Path::new("/")).summary().contains("rustc"));
    }
}
