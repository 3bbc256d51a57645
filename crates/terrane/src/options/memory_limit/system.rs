//! Finds the files with the memory limits of a process in `/proc/PID/cgroup` and `/proc/PID/mountinfo`
//! (cgroups(7), proc_pid_mountinfo(5)), and parses them, `/proc/PID/statm` and `/proc/meminfo`.
//!
//! A limit holds for a control group and all groups below it, so each group from that of the process up to
//! the root of the mounted hierarchy counts. Version 2 has one hierarchy, whose line in `/proc/PID/cgroup`
//! has the number 0 and no controllers; version 1 has one for memory. A machine may have both.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// The files of a group with limits. A group above `memory.high` is not ended but slowed down and
/// reclaimed from, which makes a larger budget useless.
const LIMIT_FILES_V1: &[&str] = &["memory.limit_in_bytes"];
const LIMIT_FILES_V2: &[&str] = &["memory.max", "memory.high"];

/// A mounted hierarchy that may limit memory.
struct Hierarchy {
    /// The group that is mounted.
    root: PathBuf,
    mounted_at: PathBuf,
    is_v2: bool,
}

/// Returns the files that limit the memory of a process, innermost group first. Files of groups without a
/// limit may be missing.
pub(super) fn limit_files(cgroup: &str, mountinfo: &str) -> Vec<PathBuf> {
    let hierarchies: Vec<Hierarchy> = mountinfo.lines().filter_map(parse_mount).collect();
    let of = |is_v2: bool, names| {
        let group = cgroup.lines().find_map(|line| group_in(line, is_v2));
        let mounts = hierarchies.iter().filter(move |hierarchy| hierarchy.is_v2 == is_v2);
        group.map_or_else(Vec::new, |group| files_of_groups(group, mounts, names))
    };
    [of(false, LIMIT_FILES_V1), of(true, LIMIT_FILES_V2)].concat()
}

/// Returns the group of the process if this line of `/proc/PID/cgroup` is that of the hierarchy.
fn group_in(line: &str, is_v2: bool) -> Option<&Path> {
    let (number, rest) = line.split_once(':')?;
    let (controllers, group) = rest.split_once(':')?;
    let is_it = match is_v2 {
        true => number == "0" && controllers.is_empty(),
        false => controllers.split(',').any(|controller| controller == "memory"),
    };
    is_it.then_some(Path::new(group))
}

/// Parses a line of `/proc/PID/mountinfo`; `None` unless it is a hierarchy that may limit memory.
fn parse_mount(line: &str) -> Option<Hierarchy> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(3);
    let (root, mounted_at) = (unescape(fields.next()?), unescape(fields.next()?));
    let mut fields = file_system.split(' ');
    let is_v2 = match fields.next()? {
        "cgroup2" => true,
        "cgroup" if fields.nth(1)?.split(',').any(|option| option == "memory") => false,
        _ => return None,
    };
    Some(Hierarchy { root, mounted_at, is_v2 })
}

/// Returns the files of a group and of the groups above it, up to the root of the mount.
///
/// In a container whose namespace does not hide it, the group of the process is a path on the host, and a
/// mount shows it as its root or below. If no mount contains the group, as for a process that was moved
/// into another group from outside, the mounted root is taken for the group.
fn files_of_groups<'a>(
    group: &Path,
    mounts: impl Iterator<Item = &'a Hierarchy> + Clone,
    names: &[&str],
) -> Vec<PathBuf> {
    let is_plain = group.components().all(|part| part != Component::ParentDir);
    let below = |mount: &&'a Hierarchy| {
        let below = group.strip_prefix(&mount.root).ok().filter(|_| is_plain)?;
        Some((&*mount.mounted_at, below))
    };
    let mut places: Vec<_> = mounts.clone().filter_map(|mount| below(&mount)).collect();
    if places.is_empty() {
        places.extend(mounts.map(|mount| (&*mount.mounted_at, Path::new(""))).take(1));
    }
    let dirs = places.iter().flat_map(|(mounted_at, below)| {
        below.ancestors().map(|ancestor| mounted_at.join(ancestor))
    });
    dirs.flat_map(|dir| names.iter().map(move |name| dir.join(name))).collect()
}

/// Decodes the octal escapes of spaces, tabs, line ends and backslashes.
fn unescape(field: &str) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::with_capacity(field.len()), field.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|digits| str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// Parses the contents of a limit file in bytes; `None` if there is no limit.
pub(super) fn parse_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Parses the size of the machine's memory from `/proc/meminfo`.
pub(super) fn parse_machine_memory(meminfo: &str) -> Option<u64> {
    parse_kib(meminfo, "MemTotal:")
}

fn parse_kib(meminfo: &str, name: &str) -> Option<u64> {
    let number = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    number.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Parses the memory that programs can still take from `/proc/meminfo`.
pub(super) fn parse_available_memory(meminfo: &str) -> Option<u64> {
    parse_kib(meminfo, "MemAvailable:")
}

/// The files of a control group that state what its processes use.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UsageFiles {
    pub(super) usage: PathBuf,
    pub(super) stat: PathBuf,
    /// Precedes the names of sums over the groups below in `stat`.
    pub(super) prefix: &'static str,
}

/// Returns the files of the group with a limit file.
pub(super) fn usage_files(limit: &Path) -> Option<UsageFiles> {
    let (dir, name) = (limit.parent()?, limit.file_name()?.to_str()?);
    let is_v1 = LIMIT_FILES_V1.contains(&name);
    let (usage, prefix) =
        if is_v1 { ("memory.usage_in_bytes", "total_") } else { ("memory.current", "") };
    Some(UsageFiles { usage: dir.join(usage), stat: dir.join("memory.stat"), prefix })
}

/// The parts of the usage of a group that the kernel reclaims before it ends a process: the page cache and
/// caches of its own.
const RECLAIMABLE: [&str; 3] = ["inactive_file", "active_file", "slab_reclaimable"];

/// Returns what the processes of a group use beside what the kernel reclaims.
pub(super) fn unreclaimable(usage: &str, stat: &str, prefix: &str) -> Option<u64> {
    let value = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        let is_counted = RECLAIMABLE.contains(&name.strip_prefix(prefix)?);
        value.trim().parse::<u64>().ok().filter(|_| is_counted)
    };
    let reclaimable = stat.lines().filter_map(value).fold(0, u64::saturating_add);
    Some(parse_limit(usage)?.saturating_sub(reclaimable))
}

/// Parses the pages that a process has mapped, and those of data and stacks, from `/proc/PID/statm`.
pub(super) fn mapped_pages(statm: &str) -> Option<(u64, u64)> {
    let mut numbers = statm.split_ascii_whitespace().map(str::parse::<u64>);
    Some((numbers.next()?.ok()?, numbers.nth(4)?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(cgroup: &str, mountinfo: &str) -> Vec<String> {
        let files = limit_files(cgroup, mountinfo).into_iter();
        files.map(|path| path.display().to_string()).collect()
    }

    const V1: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
";

    #[test]
    fn all_groups_above_a_process_count_in_version_1() {
        let cgroup = "5:cpu,cpuacct:/other\n4:memory:/system.slice/db.service\n1:name=systemd:/x\n";
        assert_eq!(
            files(cgroup, V1),
            [
                "/sys/fs/cgroup/memory/system.slice/db.service/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/system.slice/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            ]
        );
    }

    #[test]
    fn all_groups_above_a_process_count_in_version_2() {
        let mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(
            files("0::/user.slice/app\n", mount),
            [
                "/sys/fs/cgroup/user.slice/app/memory.max",
                "/sys/fs/cgroup/user.slice/app/memory.high",
                "/sys/fs/cgroup/user.slice/memory.max",
                "/sys/fs/cgroup/user.slice/memory.high",
                "/sys/fs/cgroup/memory.max",
                "/sys/fs/cgroup/memory.high",
            ]
        );
    }

    #[test]
    fn a_hybrid_machine_has_limits_of_both_versions() {
        let mounts = format!("{V1}41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
        assert_eq!(
            files("4:memory:/a\n0::/\n", &mounts),
            [
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/unified/memory.max",
                "/sys/fs/cgroup/unified/memory.high",
            ]
        );
    }

    #[test]
    fn a_container_sees_its_group_at_the_root_of_the_mount() {
        let mount = "35 31 0:32 /docker/c1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let outer = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
        assert_eq!(files("4:memory:/docker/c1\n", mount), [outer]);
        let inner = "/sys/fs/cgroup/memory/job/memory.limit_in_bytes";
        assert_eq!(files("4:memory:/docker/c1/job\n", mount), [inner, outer]);
        // The mounted group does not contain that of the process.
        assert_eq!(files("4:memory:/\n", mount), [outer]);
        assert_eq!(files("4:memory:/docker/c10\n", mount), [outer]);
        let whole = "35 31 0:32 / /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        assert_eq!(files("4:memory:/../sibling\n", whole), [outer]);
        // Another mount does.
        let both = format!("36 31 0:32 /docker/c2 /mnt/c2 ro - cgroup cgroup rw,memory\n{whole}");
        assert_eq!(files("4:memory:/\n", &both), [outer]);
    }

    #[test]
    fn escaped_paths_and_nonsense_are_parsed() {
        let mount = r"1 1 0:1 / /mnt/my\040groups\134x rw - cgroup2 none rw";
        assert_eq!(files("0::/a\n", mount)[0], r"/mnt/my groups\x/a/memory.max");
        for (cgroup, mountinfo) in [
            ("", V1),
            ("4:memory", V1),
            ("memory\n::\n4:cpu:/a\n", V1),
            ("4:memory:/a\n", ""),
            ("4:memory:/a\n", "35 31 - cgroup\n - cgroup cgroup rw,memory\n35 31 0:32 / - x"),
        ] {
            assert!(files(cgroup, mountinfo).is_empty(), "{cgroup:?} {mountinfo:?}");
        }
        assert_eq!(unescape(r"\04"), Path::new(r"\04"));
        assert_eq!(unescape(r"\9999\777"), Path::new(r"\9999\777"));
    }

    #[test]
    fn limits_are_numbers_of_bytes() {
        assert_eq!(parse_limit("268435456\n"), Some(256 << 20));
        assert_eq!(parse_limit("0\n"), Some(0));
        for none in ["max\n", "", "\n", "12 MiB", "-1", "99999999999999999999999"] {
            assert_eq!(parse_limit(none), None, "{none:?}");
        }
        let meminfo = "MemFree:  5 kB\nMemTotal:       24683520 kB\n";
        assert_eq!(parse_machine_memory(meminfo), Some(24_683_520 << 10));
        for none in ["", "MemTotal: x kB", "MemTotal: 12", "MemTotal: 99999999999999999999 kB"] {
            assert_eq!(parse_machine_memory(none), None, "{none:?}");
        }
        assert_eq!(parse_machine_memory("MemTotal: 18446744073709551615 kB"), None);
    }

    #[test]
    fn usage_counts_no_page_cache() {
        let files = usage_files(Path::new("/g/a/memory.max")).unwrap();
        assert_eq!(files.usage, Path::new("/g/a/memory.current"));
        assert_eq!((files.stat, files.prefix), (PathBuf::from("/g/a/memory.stat"), ""));
        let stat = "anon 700\nfile 300\ninactive_file 100\nactive_file 150\nslab_reclaimable 50\n";
        assert_eq!(unreclaimable("1100\n", stat, ""), Some(800));
        let files = usage_files(Path::new("/g/a/memory.limit_in_bytes")).unwrap();
        assert_eq!(files.usage, Path::new("/g/a/memory.usage_in_bytes"));
        let stat = "inactive_file 7\ntotal_rss 5\ntotal_inactive_file 100\ntotal_active_file 1\n";
        assert_eq!(unreclaimable("1100\n", stat, files.prefix), Some(999));
        assert_eq!(unreclaimable("50", stat, files.prefix), Some(0));
        assert_eq!(unreclaimable("1100", "active_file x\nactive_file\n", ""), Some(1100));
        assert_eq!(unreclaimable("", stat, ""), None);
        let meminfo = "MemTotal: 100 kB\nMemAvailable:   40 kB\n";
        assert_eq!(parse_available_memory(meminfo), Some(40 << 10));
        assert_eq!(parse_available_memory("MemTotal: 100 kB\n"), None);
    }

    #[test]
    fn mapped_pages_are_those_of_the_process() {
        assert_eq!(mapped_pages("1234 500 300 20 0 456 0\n"), Some((1234, 456)));
        assert_eq!(mapped_pages("1234 500"), None);
        assert_eq!(mapped_pages(""), None);
    }
}
