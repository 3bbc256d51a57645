//! Inserts large values as pointers into the log.
//!
//! A value of a tree that separates values is in the log when it is inserted, and usually stays there
//! (`engine/jobs/flush/logged_values.rs`). Its memtable then need not copy it: the entry is a pointer
//! into the log segment, as in a table after the flush. The value is written once, and takes no memory.

use std::sync::Arc;

use super::target::WriteTarget;
use crate::base::durability::Durability;
use crate::base::types::Lsn;
use crate::engine::catalog::Catalog;
use crate::engine::context::{Context, MemtableMemory};
use crate::engine::tree::{Tree, TreeState};
use crate::files::batch::Op;
use crate::files::value_pointer::ValuePointer;

/// No name is provided for a smaller batch, so its values are copied unless a name is there already.
const BATCH_BYTES_MIN: usize = 16 << 10;

/// Returns the bytes that memtables take for the keys and values of a write, without its large value.
#[inline]
pub(super) fn memory_bytes(
    target: &WriteTarget<'_>,
    user_bytes: usize,
    durability: Durability,
) -> usize {
    // Only large writes are counted before they begin.
    if MemtableMemory::is_large(user_bytes)
        && durability != Durability::None
        && let WriteTarget::One { op: Op::Put { key, value }, state, .. } = target
        && state.active.points_to(value)
    {
        return key.len();
    }
    user_bytes
}

/// Makes pointers to large values.
#[derive(Debug)]
pub(super) struct Pointers {
    pub(super) context: Arc<Context>,
    pub(super) catalog: Arc<Catalog>,
}

impl Pointers {
    /// Provides the name of a log segment for each tree that may need one to insert a large value. Called
    /// before the write takes its place in the order of writes, because it may wait for the manifest.
    #[inline]
    pub(super) fn provide_names(&self, target: &WriteTarget<'_>, user_bytes: usize) {
        let may_need = match target {
            WriteTarget::One { state, .. } => {
                state.active.pointed_from().is_some_and(|from| user_bytes as u64 >= from)
            }
            WriteTarget::Batch { .. } => user_bytes >= BATCH_BYTES_MIN,
        };
        if may_need {
            self.provide_names_of(target, user_bytes as u64);
        }
    }

    #[cold]
    fn provide_names_of(&self, target: &WriteTarget<'_>, user_bytes: u64) {
        for tree in target.trees(&self.catalog.trees()) {
            let state = tree.state();
            if state.active.pointed_from().is_some_and(|from| user_bytes >= from) {
                let logged = state.version.values().logged();
                logged.provide_name(|| self.catalog.next_value_file().0);
            }
        }
    }

    /// Returns the entry of a value that is at `at` in the log; `None` if the value must be copied, because
    /// it is short, or the segment cannot be opened.
    #[inline]
    pub(super) fn pointer_to(
        &self,
        (tree, state): (&Tree, &TreeState),
        op: &Op<'_>,
        at: impl FnOnce(&[u8]) -> Lsn,
    ) -> Option<Vec<u8>> {
        match *op {
            Op::Put { value, .. } if state.active.points_to(value) => {
                self.pointer_to_large((tree, state), value, at(value))
            }
            _ => None,
        }
    }

    #[cold]
    fn pointer_to_large(
        &self,
        (tree, state): (&Tree, &TreeState),
        value: &[u8],
        at: Lsn,
    ) -> Option<Vec<u8>> {
        let refs = state.active.logged_value_refs_for(value.len())?;
        let segment = self.context.log_segments.keep(at)?;
        let name = refs.file_name(&segment.path, || {
            let segments = tree.value_segments().list();
            let known = segments.iter().find(|known| *known.path == *segment.path);
            let known = known.map(|known| known.record.name);
            let logged = state.version.values().logged();
            logged.get_or_add(&segment.path, known, &self.context.tables)
        })?;
        let offset = segment.offset_of(at);
        let checksum = name.checksum(offset, value);
        let pointer = ValuePointer { file: name.number, offset, len: value.len() as u32, checksum };
        let mut encoded = Vec::new();
        pointer.encode(&mut encoded);
        refs.count_pointed(value.len());
        Some(encoded)
    }
}
