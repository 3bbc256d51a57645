//! Pictures of a tree: by size, a pyramid of levels; by key, the positions of its tables.

mod by_key;
mod by_size;
mod expiry;
mod json;
mod ranks;
#[cfg(test)]
mod tests;

pub(crate) use by_key::by_key;
pub(crate) use by_size::{Work, by_size};
pub(crate) use expiry::expiry;
pub(crate) use json::{JsonTree, JsonValueFile};
