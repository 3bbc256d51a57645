//! A description of the machine that produced the results, from Linux's `/proc`.

use std::fmt;
use std::fs;
use std::path::Path;

use crate::output::human;

/// The machine and the file system.
#[derive(Debug, Clone)]
pub struct Machine {
    processor: String,
    cores: usize,
    /// Total memory in bytes; `None` if unknown.
    pub memory_bytes: Option<u64>,
    system: String,
    file_system: Option<String>,
}

impl Machine {
    /// Describes this machine, and the file system of `dir`, which need not exist yet.
    pub fn here(dir: &Path) -> Self {
        let kernel = read("/proc/sys/kernel/osrelease");
        Self {
            processor: named(&read("/proc/cpuinfo"), "model name")
                .unwrap_or(std::env::consts::ARCH)
                .to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_bytes(&read("/proc/meminfo")),
            system: format!("{} {}", std::env::consts::OS, kernel.trim()).trim_end().to_owned(),
            file_system: file_system(&read("/proc/self/mountinfo"), dir),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.processor, human::counted(self.cores as u64, "core"))?;
        if let Some(bytes) = self.memory_bytes {
            write!(f, ", {} memory", human::bytes(bytes))?;
        }
        write!(f, " · {}", self.system)?;
        self.file_system.as_ref().map_or(Ok(()), |name| write!(f, " · {name}"))
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

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let kibibytes: u64 = named(meminfo, "MemTotal")?.split(' ').next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Returns the type and the device of the file system that contains `dir`.
fn file_system(mountinfo: &str, dir: &Path) -> Option<String> {
    // The directory may not exist yet.
    let dir = dir.ancestors().find_map(|dir| fs::canonicalize(dir).ok())?;
    let mounts = mountinfo.lines().filter_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?;
        let mut kind = kind.split(' ');
        let described = format!("{} on {}", kind.next()?, kind.next()?);
        dir.starts_with(point).then_some((point.len(), described))
    });
    // Of equal mount points, the last one hides the others.
    mounts.max_by_key(|(length, _)| *length).map(|(_, described)| described)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_is_that_of_the_longest_mount_point() {
        let mounts = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 22 0:25 / /proc rw - proc proc rw
31 22 0:26 / /pro rw shared:1 - xfs /dev/vdb rw
";
        let of = |dir: &str| file_system(mounts, Path::new(dir)).unwrap();
        assert_eq!(of("/proc/self/to-be-made"), "proc on proc");
        assert_eq!(of("/"), "ext4 on /dev/vda");
        assert_eq!(file_system("", Path::new("/")), None);
        assert_eq!(memory_bytes("MemTotal:    24570304 kB\n"), Some(24_570_304 * 1024));
        assert!(Machine::here(Path::new("/")).to_string().contains("core"));
    }
}
