//! Lines of the log about the start and the end of a server.

use crate::call::shared::Shared;

/// Prints that the server starts, and the work of the recovery.
pub(super) fn note_start(shared: &Shared, listeners: &[String]) {
    let db = shared.databases.db();
    let stats = db.stats();
    let (path, version) = (db.path().display(), env!("CARGO_PKG_VERSION"));
    tracing::info!(
        target: "terrane_server",
        kind = "started",
        durability = %db.durability(),
        process = std::process::id(),
        "serving {path} with version {version}"
    );
    for address in listeners {
        tracing::info!(target: "terrane_server", kind = "listening", "listening on {address}");
    }
    if stats.replayed_writes > 0 {
        let writes = stats.replayed_writes;
        tracing::info!(target: "terrane_server", kind = "recovered", writes, "replayed {writes} writes from the log");
    }
    if stats.dropped_log_records > 0 {
        let records = stats.dropped_log_records;
        tracing::warn!(
            target: "terrane_server",
            kind = "lost-records",
            records,
            "dropped {records} records of the log, because a power failure lost records before them"
        );
    }
}

/// Prints that the server ends.
pub(super) fn note_end(shared: &Shared) {
    let reason = shared.reason().unwrap_or("unknown");
    let connections = shared.clients.len();
    tracing::info!(
        target: "terrane_server",
        kind = "stopping",
        connections,
        "stopping, because {reason}; finishing the commands that have arrived"
    );
}
