//! The C interface of Terrane: `terrane.h`, and the libraries `libterrane_c.so` and `libterrane_c.a`.
//!
//! Each exported function converts its arguments, calls the engine, and stores the result. The comments of
//! the functions are those of the header, which a test generates, so they are written for readers of C.
//!
//! | module | one line |
//! |---|---|
//! | `argument` | pointers and lengths as references and slices |
//! | `error` | codes and errors; no panic passes [`error::call`] |
//! | `text` | strings that the library allocates, lists of names |
//! | `cursor` | an iterator that moves in both directions |
//! | `transaction_cursor` | the same over a transaction |
//! | `version` | versions of the library and of its ABI |
//! | `options` | options for opening, listeners |
//! | `database` | opening, closing, maintenance, reports |
//! | `keyspace` | keyspaces and their settings |
//! | `write_options` | options of a write |
//! | `write` | writes of one key or range |
//! | `batch` | atomic writes |
//! | `value` | values that share the memory of the database |
//! | `read` | lookups |
//! | `snapshot` | consistent views |
//! | `transaction` | transactions |
//! | `iter` | iterators |
//! | `ingest` | sorted data |
//! | `changes` | the change feed |
//! | `files` | databases that are not open: verification, repair, removal |
//!
//! # Pointers
//!
//! Most parameters have the types of Rust that have the representation of a pointer: `Option<&T>`,
//! `Option<&mut T>`, `Option<Box<T>>` and `Option<&mut MaybeUninit<T>>`. A caller in C ensures what these types
//! promise: a pointer is NULL or points to what the header says, a handle that is not const is used by one
//! thread at a time, and a handle is not used after it was freed. The functions that are `unsafe` also take
//! bytes as a pointer and a length, or a NUL-terminated string; the same rule applies to them: the bytes are
//! readable during the call.
#![allow(non_camel_case_types, reason = "types have the names that they have in C")]
#![allow(clippy::missing_safety_doc, reason = "the section on pointers is the contract of all")]

pub mod argument;
mod batch;
mod changes;
pub mod cursor;
mod database;
pub mod error;
mod files;
mod ingest;
mod iter;
mod keyspace;
mod options;
#[cfg(test)]
mod ownership_tests;
mod read;
mod snapshot;
mod text;
mod transaction;
mod transaction_cursor;
mod value;
mod version;
mod write;
mod write_options;

pub use batch::*;
pub use changes::*;
pub use database::*;
pub use files::*;
pub use ingest::*;
pub use iter::*;
pub use keyspace::*;
pub use options::*;
pub use read::*;
pub use snapshot::*;
pub use text::*;
pub use transaction::*;
pub use value::*;
pub use version::*;
pub use write::*;
pub use write_options::*;
