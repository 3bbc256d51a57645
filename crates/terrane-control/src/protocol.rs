//! The messages on the socket: lines of JSON, described in `docs/control.md`.
//!
//! A server sends [`Message::Hello`] first. A client then sends one request at a time, each with the
//! version of the protocol; the server answers with any number of items and progress reports, and with
//! one [`Message::Done`] or [`Message::Failed`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use terrane::JobView;
use terrane::policy::Forecast;

use crate::bytes::{Bytes, path};
use crate::failure::Failure;
use crate::sample::Sample;
use crate::tables::TableChanges;

/// The version of the protocol. A version may gain requests, messages and fields.
pub const PROTOCOL: u32 = 1;

/// A request with the version of the protocol.
#[cfg(unix)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) protocol: u32,
    #[serde(flatten)]
    pub(crate) request: Request,
}

/// The form of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Text for people.
    #[default]
    Text,
    /// A JSON object.
    Json,
    /// The OpenMetrics text format.
    OpenMetrics,
}

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Request {
    /// The process that serves the socket.
    Ping,
    /// The statistics of the database.
    Stats {
        /// Their form.
        #[serde(default)]
        format: Format,
    },
    /// The tree of a keyspace, or of all.
    Tree {
        /// The keyspace.
        #[serde(default)]
        keyspace: Option<String>,
        /// The form, which is not [`Format::OpenMetrics`].
        #[serde(default)]
        format: Format,
    },
    /// Events since the database was opened.
    Events {
        /// How many of the last events to begin with, at most a thousand [default: all stored
        /// events].
        #[serde(default)]
        last: Option<u64>,
        /// Also later events, until the client cancels.
        #[serde(default)]
        follow: bool,
    },
    /// Samples, each of the activity in an interval.
    Top {
        /// The interval in milliseconds, 100 to 3,600,000.
        interval_millis: u64,
        /// The number of samples [default: until the client cancels].
        #[serde(default)]
        count: Option<u64>,
        /// Also the tables of all trees and their changes, the tables that jobs take, and events: those since
        /// the database was opened, then new ones before each sample.
        #[serde(default)]
        details: bool,
    },
    /// Flushes memtables.
    Flush {
        /// The keyspace [default: all].
        #[serde(default)]
        keyspace: Option<String>,
    },
    /// Compacts a range of keys.
    Compact {
        /// The keyspace [default: all; with a range, the default keyspace].
        #[serde(default)]
        keyspace: Option<String>,
        /// The first key [default: the first key of the keyspace].
        #[serde(default)]
        from: Option<Bytes>,
        /// The first key after the range [default: unbounded].
        #[serde(default)]
        to: Option<Bytes>,
    },
    /// Copies the database.
    Checkpoint {
        /// The directory of the copy, an absolute path.
        #[serde(with = "path")]
        dir: PathBuf,
    },
    /// Predicts a change of design.
    Forecast {
        /// The keyspace.
        keyspace: String,
        /// The design [default: the one before the last change].
        #[serde(default)]
        design: Option<String>,
    },
    /// Changes a design.
    SetDesign {
        /// The keyspace.
        keyspace: String,
        /// The design [default: the one before the last change].
        #[serde(default)]
        design: Option<String>,
        /// Wait until the tree satisfies the design; cancelling restores the previous one.
        #[serde(default)]
        converge: bool,
    },
    /// The keyspaces with their sizes and designs.
    Keyspaces,
    /// Drops a keyspace.
    DropKeyspace {
        /// The keyspace.
        keyspace: String,
    },
    /// Renames a keyspace.
    RenameKeyspace {
        /// The keyspace.
        keyspace: String,
        /// The new name.
        new_name: String,
    },
    /// The options in effect.
    Options,
    /// Changes the I/O budget until the database is closed.
    SetIoBudget {
        /// The budget, as [`terrane::IoBudget`] reads it.
        io_budget: String,
    },
    /// Cancels the running request of this connection.
    Cancel,
}

/// A message from a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Message {
    /// The first message of a connection.
    Hello(Info),
    /// The progress of a long request.
    Progress(Progress),
    /// A part of the answer.
    Item(Item),
    /// The request is done.
    Done(Reply),
    /// The request failed, or the connection ends.
    Failed(Failure),
}

/// The process that serves a socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Info {
    /// The version of the protocol.
    pub protocol: u32,
    /// The version of Terrane.
    pub version: String,
    /// The process.
    pub pid: u32,
    /// The name of its program.
    pub program: String,
    /// The directory of the database, with the path by which the process opened it.
    pub database: String,
    /// When the process began to serve the socket, in microseconds since the Unix epoch.
    pub since_micros: u64,
}

/// The progress of a long request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Progress {
    /// The present activity.
    pub what: String,
    /// The bytes that were processed.
    pub done_bytes: u64,
    /// The expected number of bytes; 0 if it is not known.
    pub total_bytes: u64,
    /// The running and the waiting jobs of the database.
    pub jobs: Vec<JobView>,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "item", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Item {
    /// An event.
    Event(EventItem),
    /// A sample.
    Sample(Box<Sample>),
    /// The tables of all trees, or their changes since the previous such item. It precedes the sample of the same
    /// time, and is left out if nothing has changed.
    Tables(Box<TableChanges>),
}

/// An event of the database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EventItem {
    /// The number, counted from 1 since the database was opened.
    pub number: u64,
    /// The time in microseconds since the Unix epoch.
    pub at_micros: u64,
    /// The kind of event.
    pub event: String,
    /// The event in a sentence.
    pub text: String,
    /// All fields of the event by name.
    pub details: Value,
}

/// The end of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reply {
    /// The request has no answer except its items.
    Ended {
        /// The number of events that were dropped before the client could receive them.
        missed: u64,
    },
    /// The process that serves the socket.
    Info(Info),
    /// A report.
    Report {
        /// Its text, or the text of its JSON.
        text: String,
    },
    /// Memtables were flushed.
    Flushed {
        /// The number of their entries.
        entries: u64,
        /// Their memory.
        memtable_bytes: u64,
        /// The duration.
        seconds: f64,
    },
    /// A range was compacted.
    Compacted(Compacted),
    /// The database was copied.
    Checkpointed {
        /// The bytes of its files, linked or copied.
        bytes: u64,
        /// The duration.
        seconds: f64,
    },
    /// The prediction of a change of design.
    Forecast(Box<DesignForecast>),
    /// A design was changed.
    DesignSet {
        /// The new design.
        design: String,
        /// True if the wait was cancelled and the previous design restored.
        is_cancelled: bool,
    },
    /// The keyspaces.
    Keyspaces {
        /// One entry for each.
        keyspaces: Vec<KeyspaceInfo>,
    },
    /// A keyspace was dropped.
    Dropped {
        /// The bytes of its tables.
        table_bytes: u64,
    },
    /// A keyspace was renamed.
    Renamed,
    /// The options in effect.
    Options(CurrentOptions),
}

/// The result of a compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Compacted {
    /// The bytes of the tables of the keyspaces before.
    pub table_bytes_before: u64,
    /// The bytes of their tables afterwards.
    pub table_bytes: u64,
    /// Their tables.
    pub tables: u64,
    /// The bytes that all compactions of the database read meanwhile.
    pub compaction_bytes_read: u64,
    /// The bytes that all compactions of the database wrote meanwhile.
    pub compaction_bytes_written: u64,
}

/// A keyspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeyspaceInfo {
    /// The name.
    pub keyspace: String,
    /// Entries of its tables and of its active memtable.
    pub entries: u64,
    /// Bytes of its tables.
    pub table_bytes: u64,
    /// Its tables.
    pub tables: u64,
    /// Its design.
    pub design: String,
}

/// The options in effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CurrentOptions {
    /// The durability of writes that do not choose one.
    pub durability: String,
    /// The I/O budget.
    pub io_budget: String,
    /// The memory budget in bytes.
    pub memory_budget: u64,
}

/// The prediction of a change of design.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DesignForecast {
    /// The design now.
    pub design_before: String,
    /// The requested design.
    pub design: String,
    /// The work until the tree satisfies it.
    #[serde(flatten)]
    pub forecast: Forecast,
}
