//! Inserts large values as pointers into the log.
//!
//! A value of a tree that separates values is in the log when it is inserted, and usually stays there
//! (`engine/jobs/flush/logged_values.rs`). Its memtable then need not copy it: the entry is a pointer
//! into the log segment, as in a table after the flush. The value is written once, and takes no memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::target::WriteTarget;
use crate::base::durability::Durability;
use crate::base::types::Lsn;
use crate::engine::catalog::Catalog;
use crate::engine::context::{Context, MemtableMemory};
use crate::engine::tree::{Tree, TreeState};
use crate::files::batch::Op;
use crate::files::value_file::{LoggedFile, ValueFile};
use crate::files::value_pointer::{ValueFileName, ValuePointer};
use crate::files::wal::SegmentPlace;

/// From this size on, a batch, or a write to a tree without a memtable, is examined for large values.
const EXAMINED_BYTES_MIN: usize = 16 << 10;

/// Names are provided before fewer than this are left: one for each thread that begins a segment.
const NAMES_LEFT_MIN: usize = 32;

/// Makes pointers to large values.
#[derive(Debug)]
pub(super) struct Pointers {
    context: Arc<Context>,
    catalog: Arc<Catalog>,
    /// Names for the next segments.
    names: Mutex<Vec<ValueFileName>>,
    /// True if the last segment could not be opened, so that values are probably copied.
    is_refused: AtomicBool,
}

impl Pointers {
    pub(super) fn new(context: &Arc<Context>, catalog: &Arc<Catalog>) -> Self {
        let (context, catalog) = (Arc::clone(context), Arc::clone(catalog));
        Self { context, catalog, names: Mutex::default(), is_refused: AtomicBool::new(false) }
    }

    fn names(&self) -> MutexGuard<'_, Vec<ValueFileName>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes that memtables take for the keys and values of a write, without its large value.
    #[inline]
    pub(super) fn memory_bytes(
        &self,
        target: &WriteTarget<'_>,
        user_bytes: usize,
        durability: Durability,
    ) -> usize {
        // Only large writes are counted before they begin.
        if MemtableMemory::is_large(user_bytes)
            && durability != Durability::None
            && let WriteTarget::One { op: Op::Put { key, value }, state, .. } = target
            && state.active.points_to(value)
            // Relaxed: a hint. A value that is copied all the same was not counted.
            && !self.is_refused.load(Ordering::Relaxed)
        {
            return key.len();
        }
        user_bytes
    }

    /// Provides the names of the log segments that a write and the writes beside it may need to insert large
    /// values. Called before the write takes its place in the order of writes, because it may wait for the
    /// manifest.
    #[inline(always)]
    pub(super) fn provide_names(&self, target: &WriteTarget<'_>, user_bytes: usize) {
        let may_need = match target {
            WriteTarget::One { state, .. } => match state.active.pointed_from() {
                Some(from) => user_bytes as u64 >= from,
                None => user_bytes >= EXAMINED_BYTES_MIN && state.active.is_unwritten(),
            },
            WriteTarget::Batch { .. } => user_bytes >= EXAMINED_BYTES_MIN,
        };
        if may_need && self.names().len() < NAMES_LEFT_MIN {
            self.provide_names_of(target, user_bytes as u64);
        }
    }

    #[cold]
    fn provide_names_of(&self, target: &WriteTarget<'_>, user_bytes: u64) {
        let trees = self.catalog.trees();
        let needs_name = |tree: &&Arc<Tree>| {
            let in_log = self.context.values_in_log(&tree.design());
            in_log.is_some_and(|in_log| user_bytes >= in_log.pointed_from)
        };
        if target.trees(&trees).iter().any(needs_name) {
            // Without the lock, which writers take that have their place.
            let next = || self.catalog.next_value_file().0;
            let more: Vec<_> = std::iter::repeat_with(next).take(2 * NAMES_LEFT_MIN).collect();
            self.names().extend(more);
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
                let pointer = self.pointer_to_large((tree, state), value, at(value));
                self.is_refused.store(pointer.is_none(), Ordering::Relaxed);
                pointer
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
            let logged = state.version.values().logged();
            logged.get_or_add(&segment.path, || self.open(tree, &segment))
        })?;
        let offset = segment.offset_of(at);
        let checksum = name.checksum(offset, value);
        let pointer = ValuePointer { file: name.number, offset, len: value.len() as u32, checksum };
        let mut encoded = Vec::new();
        pointer.encode(&mut encoded);
        refs.count_pointed(value.len());
        Some(encoded)
    }

    /// Opens a segment in which a tree has its first value.
    fn open(&self, tree: &Tree, segment: &SegmentPlace) -> Option<Arc<LoggedFile>> {
        let Context { storage, tables, .. } = &*self.context;
        let reader = segment.open(&**storage).ok()?;
        let len = storage.len(&segment.path).ok()?;
        let segments = tree.value_segments().list();
        let known = segments.iter().find(|known| *known.path == *segment.path);
        let known = known.map(|known| known.record.name);
        let name = match known {
            Some(name) => name,
            None => self.names().pop()?,
        };
        let file = ValueFile::of_segment(name, len, &segment.path, reader, tables);
        Some(LoggedFile::new(name, known.is_some(), &segment.path, file))
    }
}
