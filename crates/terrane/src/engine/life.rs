//! From files to a running database and back.

pub(crate) mod checkpoint;
pub(crate) mod close;
pub(crate) mod open;
pub(crate) mod recover;
