//! Lookups that read no file.

use super::filter::Filter;
use super::index::Index;
use super::lookup::{FoundVersion, find, search};
use super::reader::Table;
use super::slots::{FILTER_SLOT, INDEX_SLOT, data_slot};
use crate::base::stats::Counter;
use crate::base::types::SeqNo;
use crate::files::buffer::pin;

impl Table {
    /// Returns the newest version of `key` at or below `seq`, as [`Table::may_have`] and [`Table::get`]
    /// would, if everything they read is in memory. Returns `None` otherwise, or if a block in memory is
    /// damaged.
    ///
    /// Unlike [`Table::is_block_resident`] before a read, this is safe against concurrent evictions.
    pub(crate) fn get_resident(
        &self,
        key: &[u8],
        hash: u64,
        seq: SeqNo,
    ) -> Option<Option<FoundVersion>> {
        let opened = self.opened_already()?;
        let info = self.info();
        if seq < info.smallest_seq || *key < *info.range.start || opened.index.len() == 0 {
            return Some(None);
        }
        let guard = pin();
        if !opened.footer.filter.is_none() {
            let filter = opened.slots.get(FILTER_SLOT, &guard)?;
            let may = Filter::parse(&filter).ok()?.may_contain(hash);
            self.counters().add(Counter::FilterProbes, 1);
            if !may {
                self.counters().add(Counter::FilterNegatives, 1);
                return Some(None);
            }
        }
        let index = opened.slots.get(INDEX_SLOT, &guard)?;
        let index = Index::new(&index, &opened.index);
        let number = search(opened, &index, key);
        let Some(block) = opened.slots.get(data_slot(number), &guard) else {
            drop(guard);
            return self.hot_version(key, hash, seq).map(Some);
        };
        let found = find(block, None, key, seq).ok()?;
        let next = number + 1;
        if found.is_none() && opened.index.continues(next) && index.continues_in(next, key) {
            // An older version may be in the next block.
            return None;
        }
        self.note_read();
        self.counters().add_get_block(self.file.level());
        Some(found)
    }
}
