//! The C interface of LevelDB on Terrane: the functions of `leveldb/c.h`, with their names and parameters, so that
//! a program that was written for them runs when it is linked with `libterrane_leveldb` instead.
//!
//! It is a library of its own because a program that uses Terrane through `terrane.h` may also use the real
//! LevelDB, whose functions have these names. `docs/c.md` says what each option does here.
//!
//! | module | one line |
//! |---|---|
//! | `status` | errors as strings from `malloc` |
//! | `objects` | comparators, filter policies, caches, environments |
//! | `options` | options of databases, reads and writes |
//! | `batch` | atomic writes |
//! | `database` | opening, reads, writes, snapshots, properties |
//! | `iterator` | iterators |
//! | `files` | removal and repair of databases that are not open |
//! | `predecessor` | directories that LevelDB used before |
//!
//! The section on pointers in the documentation of `terrane_c` applies here too.
#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    reason = "items have the names that they have in C"
)]
#![allow(
    clippy::missing_safety_doc,
    reason = "the documentation of LevelDB states what a caller ensures"
)]

mod batch;
mod database;
mod files;
mod iterator;
mod objects;
mod options;
mod predecessor;
mod status;

pub use batch::*;
pub use database::*;
pub use files::*;
pub use iterator::*;
pub use objects::*;
pub use options::*;
pub use status::*;
