//! Incremental backups of [Terrane](terrane) databases.
//!
//! A *repository* is a location with backups: a [`Directory`], an object store such as S3 with the feature
//! `object-store`, or any other implementation of [`Repository`]; [`open`] finds it by a path or a URL.
//! Tables and value files of a database never change, so a repository stores each of them once, as an
//! object named by the hash of its contents, and all backups of all databases share the objects. A backup
//! is a small manifest that lists files and their objects. It is written last, so an interrupted backup
//! does not count, and the next one uses its objects.
//!
//! [`create`] makes a backup while the database is in use, [`list`] lists the backups, [`verify`] reads all
//! objects, [`prune`] removes old backups, and [`restore`] restores a database. The command `terrane
//! backup` does the same.
//!
//! | module | one line |
//! |---|---|
//! | `create`, `verify`, `prune`, `restore` | the operations |
//! | `retention` | which backups a prune keeps |
//! | `lock` | locks in a repository |
//! | `staging`, `source` | the checkpoint of a database |
//! | `catalog`, `manifest` | the backups in a repository, and the format of one |
//! | `history`, `lineage` | the order of backups, which no clock decides |
//! | `repository`, `location`, `directory`, `bucket`, `memory` | the location of backups |
//! | `content` | the names of objects |
//! | `limited` | files up to the limit of the process for their size |
//! | `watch`, `cancelled` | pace, progress and cancellation |
//! | `moment`, `error` | times; errors |
#![forbid(unsafe_code)]

#[cfg(feature = "object-store")]
mod bucket;
mod cancelled;
mod catalog;
mod content;
mod create;
mod directory;
mod error;
mod history;
mod limited;
mod lineage;
mod location;
mod lock;
mod manifest;
mod memory;
mod moment;
mod prune;
mod repository;
mod restore;
mod retention;
mod source;
mod staging;
mod verify;
mod watch;

#[cfg(feature = "object-store")]
pub use bucket::Bucket;
pub use catalog::{Catalog, Which, list};
pub use content::ContentId;
pub use create::{CreateOptions, Created, ReadBack, create};
pub use directory::Directory;
pub use error::{Error, Result};
pub use history::Notice;
pub use location::open;
pub use lock::{RepositoryLock, Unlock, unlock};
pub use manifest::{BackedUpFile, BackedUpKeyspace, Backup, Origin};
pub use memory::Memory;
pub use moment::{parse_utc, utc};
pub use prune::{PruneOptions, Pruned, plan_prune, prune};
pub use repository::{Repository, Stored};
pub use restore::{RestoreOptions, Restored, restore};
pub use retention::Retention;
pub use source::{CheckpointError, CheckpointWith, Source};
pub use verify::{DamagedObject, IncompleteBackup, RepositoryVerification, VerifyOptions, verify};
pub use watch::Progress;
