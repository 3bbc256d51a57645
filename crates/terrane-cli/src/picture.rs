//! A tree as people see it: by size, a pyramid of levels; by key, where its tables lie.

mod by_key;
mod by_size;
mod json;
#[cfg(test)]
mod tests;

pub(crate) use by_key::by_key;
pub(crate) use by_size::{Work, by_size};
pub(crate) use json::JsonTree;
