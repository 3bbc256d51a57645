//! The process's limit of open files, which connections and the database share.
//!
//! A database that cannot open a file stops accepting writes, so connections leave it enough files.

/// The files of the database that are not tables: its log, the manifest, and tables that are being written.
const RESERVED: usize = 64;

/// The most tables that a database keeps open unless its options say otherwise: a quarter of the limit.
const TABLES_MAX: usize = 1000;

/// Returns how many connections a limit of open files allows.
fn connections_of(limit: usize) -> usize {
    limit.saturating_sub((limit / 4).min(TABLES_MAX) + RESERVED).max(1)
}

/// Returns how many connections the limit of open files allows.
#[cfg(unix)]
pub(crate) fn connections_max() -> usize {
    use rustix::process::{Resource, getrlimit};
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| connections_of(usize::try_from(limit).unwrap_or(usize::MAX)))
}

#[cfg(not(unix))]
pub(crate) fn connections_max() -> usize {
    usize::MAX
}

/// Raises this process's limit of open files, as far as the system allows, so that a server can
/// accept this many connections in addition to the files of its database. Call it before opening
/// the database, which derives from the limit how many tables it keeps open.
#[cfg(unix)]
pub fn raise_file_limit(connections: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted =
        u64::try_from(connections.saturating_add(TABLES_MAX + RESERVED)).unwrap_or(u64::MAX);
    if current.is_some_and(|current| current < wanted) {
        let current = Some(maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        // Without it, the server accepts fewer connections.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    }
}

/// Does nothing: this system has no such limit.
#[cfg(not(unix))]
pub fn raise_file_limit(_: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_to_the_database() {
        assert_eq!(connections_of(1024), 1024 - 256 - 64);
        assert_eq!(connections_of(1 << 20), (1 << 20) - 1000 - 64);
        assert_eq!(connections_of(10), 1);
        assert!(connections_of(10_000 + TABLES_MAX + RESERVED) >= 10_000);
    }
}
