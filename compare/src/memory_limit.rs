//! Limits the memory of a measurement, page cache included, with a control group of Linux.
//!
//! The parent creates a group for each measurement, and the child enters it before it opens the engine.
//! The kernel then charges all of the child's memory to the group: its allocations, and the pages of
//! files that it reads or writes. At the limit it reclaims pages of files; a process whose allocations
//! alone exceed the limit is killed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The files of a group, which differ between the two versions of the interface.
#[derive(Debug, Clone, Copy)]
struct Version {
    limit: &'static str,
    swap: Option<(&'static str, &'static str)>,
    /// Drops the pages of files, so that nothing is left to charge to other groups.
    empty: Option<&'static str>,
}

const V1: Version = Version {
    limit: "memory.limit_in_bytes",
    swap: Some(("memory.swappiness", "0")),
    empty: Some("memory.force_empty"),
};
const V2: Version =
    Version { limit: "memory.max", swap: Some(("memory.swap.max", "0")), empty: None };

/// How often an attempt to remove a group is repeated; a group is busy until the kernel has removed its
/// last process.
const REMOVALS: u32 = 50;

/// A control group with a memory limit, which is removed on drop.
#[derive(Debug)]
pub(crate) struct MemoryGroup {
    dir: PathBuf,
    version: Version,
}

impl MemoryGroup {
    /// Creates a group with a limit in bytes.
    ///
    /// # Errors
    /// The system has no memory control groups, or the user may not create them.
    pub(crate) fn create(bytes: u64) -> Result<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let name = format!("terrane-compare-{}", std::process::id());
        let mut failure = None;
        for (base, version) in bases(&own, &mounts) {
            match Self::create_in(&base.join(&name), version, bytes) {
                Ok(group) => return Ok(group),
                Err(error) => failure = Some((base, error)),
            }
        }
        match failure {
            None => bail!("this system has no memory control groups"),
            Some((base, error)) => Err(error)
                .with_context(|| format!("cannot limit memory by a group in {}", base.display())),
        }
    }

    fn create_in(dir: &Path, version: Version, bytes: u64) -> io::Result<Self> {
        fs::create_dir(dir)?;
        let group = Self { dir: dir.into(), version };
        // A group without the memory controller does not have this file.
        fs::metadata(dir.join(version.limit))?;
        fs::write(dir.join(version.limit), bytes.to_string())?;
        if let Some((file, value)) = version.swap {
            // Absent if the kernel has no swap.
            let _ = fs::write(dir.join(file), value);
        }
        Ok(group)
    }

    /// Returns the file that a process writes its number to in order to enter the group.
    pub(crate) fn entrance(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        for _ in 0..REMOVALS {
            if let Some(file) = self.version.empty {
                let _ = fs::write(self.dir.join(file), "0");
            }
            match fs::remove_dir(&self.dir) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                _ => return,
            }
        }
    }
}

/// Moves this process into the group with this entrance.
pub(crate) fn enter(entrance: &Path) -> Result<()> {
    fs::write(entrance, std::process::id().to_string())
        .with_context(|| format!("entering the memory group {}", entrance.display()))
}

/// Returns the directories in which a group may be created: the group of this process, its parent,
/// because a group of version 2 with processes cannot have limited children, and the root.
fn bases(own: &str, mounts: &str) -> Vec<(PathBuf, Version)> {
    let mut found = Vec::new();
    for (root, kind, options) in mounts.lines().filter_map(mount) {
        let version = match kind {
            "cgroup" if options.split(',').any(|option| option == "memory") => V1,
            "cgroup2" => V2,
            _ => continue,
        };
        let is_of_version = |line: &&str| match version.empty {
            Some(_) => line
                .split(':')
                .nth(1)
                .is_some_and(|list| list.split(',').any(|name| name == "memory")),
            None => line.starts_with("0::"),
        };
        let path = own.lines().find(is_of_version).and_then(|line| line.splitn(3, ':').nth(2));
        let own = Path::new(root).join(path.unwrap_or("/").trim_start_matches('/'));
        let parent = own.parent().filter(|parent| parent.starts_with(root)).map(Path::to_path_buf);
        let mut dirs = vec![own];
        dirs.extend(parent);
        dirs.push(root.into());
        dirs.dedup();
        found.extend(dirs.into_iter().map(|dir| (dir, version)));
    }
    found
}

/// Returns the mount point, the type and the options of a line of `mountinfo`.
fn mount(line: &str) -> Option<(&str, &str, &str)> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    Some((mount.split(' ').nth(4)?, kind.next()?, kind.nth(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_created_next_to_the_own_group() {
        let mounts = "\
30 22 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
31 22 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 22 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
";
        let own = "4:memory:/jobs/a\n1:cpu:/\n0::/user/b\n";
        let dirs: Vec<_> = bases(own, mounts)
            .into_iter()
            .map(|(dir, version)| (dir.display().to_string(), version.limit))
            .collect();
        let expected = [
            ("/sys/fs/cgroup/memory/jobs/a", V1.limit),
            ("/sys/fs/cgroup/memory/jobs", V1.limit),
            ("/sys/fs/cgroup/memory", V1.limit),
            ("/sys/fs/cgroup/unified/user/b", V2.limit),
            ("/sys/fs/cgroup/unified/user", V2.limit),
            ("/sys/fs/cgroup/unified", V2.limit),
        ];
        assert_eq!(dirs, expected.map(|(dir, limit)| (dir.to_string(), limit)));
        assert!(bases(own, "30 22 0:25 / /sys rw - sysfs sysfs rw\n").is_empty());
    }

    /// Needs the right to create groups; elsewhere it checks that the error says so.
    #[test]
    fn a_group_has_its_limit_and_is_removed() {
        match MemoryGroup::create(64 << 20) {
            Ok(group) => {
                let limit = fs::read_to_string(group.dir.join(group.version.limit)).unwrap();
                assert_eq!(limit.trim(), (64 << 20).to_string());
                assert!(group.entrance().exists());
                let dir = group.dir.clone();
                drop(group);
                assert!(!dir.exists());
            }
            Err(error) => assert!(format!("{error:#}").contains("memory"), "{error:#}"),
        }
    }
}
