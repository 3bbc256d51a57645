//! A local socket through which other processes watch and maintain an open Terrane database.
//!
//! Only one process at a time has a database open for writing. One line of code gives access to
//! other processes of the same user, such as the command `terrane`:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let db = terrane::Db::open(dir.path())?;
//! let _control = terrane_control::ControlSocket::serve(&db)?;
//! # Ok(())
//! # }
//! ```
//!
//! Then `terrane top DIR`, `terrane checkpoint DIR COPY` and other commands work while the process
//! runs. The socket is the file `control.sock` in the directory of the database. Only the user of
//! the process and root can connect. `docs/control.md` describes requests and messages.
//!
//! | to | use |
//! |---|---|
//! | serve a database | [`ControlSocket`] |
//! | ask the process that has it open | [`Client`] |
//! | do the same on a database of this process | [`execute`] |
//! | take samples for a display | [`Sampler`], [`Sample`](sample::Sample) |
//! | draw the trees of a database as they change | [`TableChanges`](tables::TableChanges) |
//!
//! Unix only; other platforms serve nothing.

mod bytes;
#[cfg(not(unix))]
mod elsewhere;
mod execute;
mod failure;
mod follower;
mod protocol;
pub mod sample;
mod sampler;
pub mod tables;
#[cfg(unix)]
mod unix;
mod watch;

pub use bytes::Bytes;
#[cfg(not(unix))]
pub use elsewhere::{Client, ControlSocket};
pub use execute::execute;
pub use failure::Failure;
pub use protocol::{
    Compacted, CurrentOptions, DesignForecast, EventItem, Format, Info, Item, KeyspaceInfo,
    Message, PROTOCOL, Progress, Reply, Request,
};
pub use sampler::Sampler;
#[cfg(unix)]
pub use unix::{Client, ControlSocket};
pub use watch::{Interest, Watch};
