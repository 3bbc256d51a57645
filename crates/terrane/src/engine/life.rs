//! From files to a running database and back.
//!
//! | module | one line |
//! |---|---|
//! | `copy_file` | copies of files that are not read through the engine |
//! | `foreign_files` | refuses to create a database among other files |
//! | `log_home` | finds, creates and moves the log directory |
//! | `assembly` | assembles the parts of an open database |
//! | `recover` | replays the log |
//! | `open` | from a directory to a running database |
//! | `open_read_only` | opens a directory for reading, even while a writer changes it |
//! | `close` | from a running database to files |
//! | `destroy` | removes the files of a database |
//! | `checkpoint` | a second database with the same contents |

mod assembly;
mod checkpoint;
mod close;
mod copy_file;
mod destroy;
mod foreign_files;
mod log_home;
mod open;
mod open_read_only;
mod recover;

pub(crate) use assembly::{Engine, Opened};
pub(crate) use destroy::destroy;
pub(super) use open::open;
pub(super) use open_read_only::open_read_only;
