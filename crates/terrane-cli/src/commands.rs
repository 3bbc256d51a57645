//! The subcommands, a module each: arguments, and a `run` that carries them out.

pub(crate) mod advise;
pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod cs265;
pub(crate) mod design;
pub(crate) mod dump;
pub(crate) mod experiment;
pub(crate) mod generate;
pub(crate) mod inspect;
pub(crate) mod keyspace;
pub(crate) mod load;
pub(crate) mod options;
pub(crate) mod repair;
pub(crate) mod replay;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod simulate;
pub(crate) mod stability;
pub(crate) mod stats;
pub(crate) mod sweep;
pub(crate) mod verify;
pub(crate) mod workload;
