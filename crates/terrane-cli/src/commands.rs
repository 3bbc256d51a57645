//! The subcommands, a module each: arguments, and a `run` that carries them out.

pub(crate) mod bench;
