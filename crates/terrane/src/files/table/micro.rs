//! A block and a filter alone, for benchmarks.

use super::block::{Block, BlockBuilder, Layout};
use super::filter::{self, Filter, filter_hash};
use crate::base::types::{EntryKind, MAX_SEQ};

/// A block of entries with the same value.
pub(crate) struct MicroBlock {
    bytes: Vec<u8>,
    layout: Layout,
}

impl MicroBlock {
    /// `keys` must be ascending.
    pub(crate) fn new(keys: &[[u8; 16]], value: &[u8]) -> Self {
        let mut builder = BlockBuilder::default();
        for key in keys {
            builder.add(key, 1, EntryKind::Value, value);
        }
        let mut bytes = Vec::new();
        builder.finish(&mut bytes);
        let layout = Layout::parse(&bytes).unwrap_or_default();
        Self { bytes, layout }
    }

    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        matches!(Block::new(&self.bytes, &self.layout).find(None, key, MAX_SEQ), Ok(Some(_)))
    }
}

/// A filter of some keys.
pub(crate) struct MicroFilter(Vec<u8>);

impl MicroFilter {
    pub(crate) fn new(keys: impl Iterator<Item = [u8; 16]>, bits_per_key: f64) -> Self {
        let hashes: Vec<u64> = keys.map(|key| filter_hash(&key)).collect();
        Self(filter::build(&hashes, bits_per_key, None).unwrap_or_default())
    }

    pub(crate) fn may_hold(&self, key: &[u8]) -> bool {
        Filter::parse(&self.0).is_ok_and(|filter| filter.may_contain(filter_hash(key)))
    }
}
