//! This process and its machine: what every measurement needs besides a database.
//!
//! | module | one line |
//! |---|---|
//! | [`environment`] | the setting of a measurement |
//! | [`machine`] | the machine |
//! | [`program`] | the identity of this program |
//! | [`resources`] | processor time and memory of processes |
//! | [`progress`] | progress of long work, on standard error |
//! | [`interrupt`], [`scratch`] | Ctrl-C, and temporary directories |
//! | [`passing_storage`] | files that need not survive a crash |

pub mod environment;
pub mod interrupt;
pub mod machine;
pub mod passing_storage;
pub mod program;
pub mod progress;
pub mod resources;
pub mod scratch;

pub use environment::Environment;
