//! The state that all parts of the engine share.

pub(crate) mod health;
