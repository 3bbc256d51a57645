//! Carries out requests on an open database.
//!
//! | module | one line |
//! |---|---|
//! | `long` | flushes, compactions and copies, which report progress and can be cancelled |
//! | `stream` | events and samples, until the client has enough |
//! | `designs` | forecasts and changes of designs |
//!
//! The command `terrane` uses this directly if it opened the database itself, so both paths give
//! the same answers.

mod designs;
mod long;
mod stream;

use serde::Serialize;
use terrane::{Db, Error, IoBudget, Keyspace, Maintenance};

use crate::failure::Failure;
use crate::protocol::{CurrentOptions, Format, KeyspaceInfo, Reply, Request};
use crate::sampler::{existing, keyspaces};
use crate::watch::Watch;

/// The default keyspace, which every database has.
const DEFAULT_KEYSPACE: &str = "default";

/// Carries out a request on a database that this process has open.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// use terrane_control::{Reply, Request, execute};
///
/// let db = terrane::Db::open(dir.path())?;
/// db.put("key", "value")?;
/// let reply = execute(&db, &Request::Flush { keyspace: None }, &mut Vec::new())?;
/// assert!(matches!(reply, Reply::Flushed { entries: 1, .. }));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The request is invalid or was cancelled, or the database refused it.
pub fn execute(db: &Db, request: &Request, watch: &mut dyn Watch) -> Result<Reply, Failure> {
    match request {
        Request::Ping => Err(Failure::invalid("only a socket has a server")),
        Request::Cancel => Err(Failure::invalid("no request is running")),
        Request::Stats { format } => stats(db, *format),
        Request::Tree { keyspace, format } => tree(db, keyspace.as_deref(), *format),
        Request::Events { last, follow } => stream::events(db, *last, *follow, watch),
        Request::Top { interval_millis, count, details } => {
            stream::samples(db, (*interval_millis, *count), *details, watch)
        }
        Request::Flush { keyspace } => long::flush(db, &chosen(db, keyspace.as_deref())?, watch),
        Request::Compact { keyspace, from, to } => {
            let has_range = from.is_some() || to.is_some();
            let default = has_range.then_some(DEFAULT_KEYSPACE);
            let keyspaces = chosen(db, keyspace.as_deref().or(default))?;
            long::compact(db, &keyspaces, (from.as_ref(), to.as_ref()), watch)
        }
        Request::Checkpoint { dir } => long::checkpoint(db, dir, watch),
        Request::Forecast { keyspace, design } => {
            designs::forecast(&find(db, keyspace)?, design.as_deref())
        }
        Request::SetDesign { keyspace, design, converge } => {
            designs::set(db, &find(db, keyspace)?, design.as_deref(), *converge, watch)
        }
        Request::Keyspaces => Ok(Reply::Keyspaces { keyspaces: infos(db) }),
        Request::DropKeyspace { keyspace } => drop_keyspace(db, keyspace),
        Request::RenameKeyspace { keyspace, new_name } => rename(db, keyspace, new_name),
        Request::Options => Ok(Reply::Options(options(db))),
        Request::SetIoBudget { io_budget } => set_io_budget(db, io_budget),
    }
}

/// Returns a keyspace, which must exist.
fn find(db: &Db, name: &str) -> Result<Keyspace, Failure> {
    existing(db, name).ok_or_else(|| {
        let known = db.keyspaces().join(", ");
        let path = db.path().display();
        Failure::invalid(format!("no keyspace '{name}' in {path}; existing keyspaces: {known}"))
    })
}

/// Returns a keyspace, or all of them.
fn chosen(db: &Db, name: Option<&str>) -> Result<Vec<Keyspace>, Failure> {
    match name {
        Some(name) => Ok(vec![find(db, name)?]),
        None => Ok(keyspaces(db)),
    }
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::invalid(error.to_string()))
}

fn stats(db: &Db, format: Format) -> Result<Reply, Failure> {
    let stats = db.stats();
    let text = match format {
        Format::Text => stats.to_string(),
        Format::Json => json(&stats)?,
        Format::OpenMetrics => stats.open_metrics(),
    };
    Ok(Reply::Report { text })
}

fn tree(db: &Db, keyspace: Option<&str>, format: Format) -> Result<Reply, Failure> {
    let trees: Vec<_> = chosen(db, keyspace)?.iter().map(Keyspace::tree).collect();
    let text = match format {
        Format::Text => trees.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        Format::Json => json(&trees)?,
        Format::OpenMetrics => return Err(Failure::invalid("a tree has no OpenMetrics form")),
    };
    Ok(Reply::Report { text })
}

fn infos(db: &Db) -> Vec<KeyspaceInfo> {
    let info = |keyspace: &Keyspace| {
        let tree = keyspace.tree();
        KeyspaceInfo {
            entries: tree.shape.tables().map(|table| table.entries).sum::<u64>()
                + tree.memtable_entries,
            table_bytes: tree.shape.size_bytes(),
            tables: tree.shape.table_count() as u64,
            design: tree.design.to_string(),
            keyspace: tree.keyspace,
        }
    };
    keyspaces(db).iter().map(info).collect()
}

fn drop_keyspace(db: &Db, name: &str) -> Result<Reply, Failure> {
    let tree = find(db, name)?.tree();
    if name == DEFAULT_KEYSPACE {
        return Err(Failure::invalid("the default keyspace cannot be dropped"));
    }
    if !db.drop_keyspace(name)? {
        return Err(Failure::invalid(format!("no keyspace '{name}'")));
    }
    Ok(Reply::Dropped { table_bytes: tree.shape.size_bytes() })
}

fn rename(db: &Db, name: &str, new_name: &str) -> Result<Reply, Failure> {
    find(db, name)?;
    if name == DEFAULT_KEYSPACE {
        return Err(Failure::invalid("the default keyspace cannot be renamed"));
    }
    if !db.rename_keyspace(name, new_name)? {
        return Err(Failure::invalid(format!("no keyspace '{name}'")));
    }
    Ok(Reply::Renamed)
}

fn options(db: &Db) -> CurrentOptions {
    CurrentOptions {
        durability: db.durability().to_string(),
        io_budget: db.io_budget().to_string(),
        memory_budget: db.stats().memory.budget_bytes,
    }
}

fn set_io_budget(db: &Db, text: &str) -> Result<Reply, Failure> {
    Maintenance::of(db).check_writable()?;
    let bad = |error| Failure { option: Some("io_budget".to_owned()), ..Failure::from(error) };
    let budget: IoBudget = text.parse().map_err(|error| bad(Error::from(error)))?;
    db.set_io_budget(budget)?;
    Ok(Reply::Options(options(db)))
}
