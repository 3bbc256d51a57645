//! The change feed: the committed writes of a database in order, from its log.
//!
//! | module | one line |
//! |---|---|
//! | `calls` | the batches, errors and positions of a feed, and waiting |
//! | `retention` | which log files are kept, and for how long |
//! | `model` | random operations and options; the feed against the operations, and a follower against a model |
//! | `crashes` | a crash at each operation: a follower never has writes that its leader lost |
//! | `concurrent` | writers, flushes and keyspaces alongside followers |
//! | `copies` | copies that followers begin with |
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads of their own")]

mod calls;
mod concurrent;
mod copies;
mod crashes;
mod model;
mod openings;
mod retention;
use terrane::{Change, ChangeBatch, Changes, Db, KeyspaceOptions, WriteBatch};

/// A change as text.
fn text(change: &Change<'_>) -> String {
    let name = |change: &Change<'_>| {
        let keyspace = change.keyspace().unwrap();
        let name = keyspace.name().map(str::to_owned);
        name.unwrap_or_else(|| format!("number {}", keyspace.id()))
    };
    let of = |bytes: &[u8]| bytes.escape_ascii().to_string();
    match change {
        Change::Put { key, value, expires_at_micros: None, .. } => {
            format!("{}: {} = {}", name(change), of(key), of(value))
        }
        Change::Put { key, value, expires_at_micros: Some(expires_at), .. } => {
            format!("{}: {} = {} until {expires_at}", name(change), of(key), of(value))
        }
        Change::Delete { key, .. } => format!("{}: delete {}", name(change), of(key)),
        Change::DeleteRange { start, end, .. } => {
            let end = end.map(of).unwrap_or_default();
            format!("{}: delete {}..{end}", name(change), of(start))
        }
        Change::Merge { key, operand, .. } => {
            format!("{}: {} += {}", name(change), of(key), of(operand))
        }
        _ => "not logged".into(),
    }
}

fn texts(batch: &ChangeBatch) -> Vec<String> {
    batch.iter().map(|change| text(&change)).collect()
}

/// Returns all batches that a feed has now, as their first and last numbers and texts.
fn all(changes: &mut Changes) -> Vec<(u64, u64, String)> {
    let batches = changes.map(|batch| {
        let batch = batch.unwrap();
        (batch.first(), batch.position(), texts(&batch).join(", "))
    });
    batches.collect()
}

/// The key of the position of a follower.
const POSITION: &[u8] = b"\0position";

/// Returns the position up to which a follower has applied changes.
fn position(follower: &Db) -> u64 {
    let position = follower.get(POSITION).unwrap();
    position.map_or(0, |bytes| u64::from_le_bytes((*bytes).try_into().unwrap()))
}

/// Applies all changes that the leader has now, each batch with its position in one write. Returns the
/// number of batches.
fn follow(changes: &mut Changes, follower: &Db) -> terrane::Result<u64> {
    let mut count = 0;
    for batch in changes {
        let batch = batch?;
        let mut write = WriteBatch::new();
        for change in batch.iter() {
            let keyspace = change.keyspace().unwrap();
            // Changes to keyspaces that have since been dropped are skipped.
            if let Some(name) = keyspace.name() {
                let keyspace = follower.keyspace(name, KeyspaceOptions::new())?;
                write.repeat_in(&keyspace, &change);
            }
        }
        write.put(POSITION, batch.position().to_le_bytes());
        follower.write(&write)?;
        count += 1;
    }
    Ok(count)
}
