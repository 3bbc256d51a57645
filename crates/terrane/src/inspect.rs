//! Inspects the files of a database without opening it.
//!
//! All functions except [`repair()`] only read, and may be called while a writer has the database open.
//! They read as much of a damaged database as is readable, and report the damage.
//!
//! ```
//! # fn main() -> terrane::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! use terrane::inspect;
//! let db = terrane::Db::open(dir.path())?;
//! db.put("key", "value")?;
//! db.flush()?;
//! let report = inspect::verify(dir.path(), &mut |_| {})?;
//! assert!(report.tables == 1 && report.problems.is_empty());
//! for version in inspect::key(dir.path(), b"key")? {
//!     println!("{version:?}");
//! }
//! # Ok(())
//! # }
//! ```

mod files;
mod history;
mod key;
mod key_writer;
mod log;
mod lost_range;
mod manifest;
mod problem;
mod repair;
mod salvage;
mod salvaged_tables;
mod table;
mod values;
mod verify;
mod verify_values;

pub use files::{DatabaseFiles, FileFacts, files};
pub use history::{
    DeletesReport, JobReport, KeyspaceDeletes, LogFile, compaction_rate, deletes, jobs,
};
pub use key::{KeyVersion, key};
pub use log::{LogRecord, LogReport, RecordOperation, SegmentReport, log};
pub use lost_range::LostRange;
pub use manifest::{ManifestEdit, manifest};
pub use problem::{Problem, Progress};
pub use repair::{RepairReport, repair, repair_with_progress};
pub use table::{DeletedRange, TableEntry, TableReport, table};
pub use verify::{Verification, verify, verify_after_power_loss};
