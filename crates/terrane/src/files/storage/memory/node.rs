//! A file in memory: its contents, its durable contents, and its unsynced writes.

use std::sync::Arc;

/// The identity of a file, independent of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(pub(super) u64);

/// An unsynced change.
#[derive(Debug, Clone)]
pub(super) enum Pending {
    Write(PendingWrite),
    /// A new length; added bytes are zeros.
    Length(usize),
}

/// Unsynced bytes.
#[derive(Debug, Clone)]
pub(super) struct PendingWrite {
    pub(super) offset: usize,
    pub(super) bytes: Arc<[u8]>,
}

/// Each open handle of a file holds a clone, so the clones count the handles.
#[derive(Debug, Clone, Default)]
pub(super) struct Open {
    holders: Arc<()>,
}

/// The contents of a file.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Shared with the durable contents until the next write.
    data: Arc<Vec<u8>>,
    durable: Arc<Vec<u8>>,
    pending: Vec<Pending>,
    open: Open,
}

/// The state from which crash images of a file are made.
#[derive(Debug, Clone)]
pub(super) struct FrozenNode {
    pub(super) durable: Arc<Vec<u8>>,
    pub(super) pending: Vec<Pending>,
}

impl Node {
    /// A file with durable contents.
    pub(super) fn durable(data: Arc<Vec<u8>>) -> Self {
        Self { durable: Arc::clone(&data), data, ..Self::default() }
    }

    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns a holder for a new open handle.
    pub(super) fn open(&self) -> Open {
        self.open.clone()
    }

    pub(super) fn is_open(&self) -> bool {
        Arc::strong_count(&self.open.holders) > 1
    }

    /// Replaces the contents durably.
    pub(super) fn replace(&mut self, data: Vec<u8>) {
        let open = self.open();
        *self = Self { open, ..Self::durable(Arc::new(data)) };
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let write = PendingWrite { offset, bytes: bytes.into() };
        write.apply(Arc::make_mut(&mut self.data), 0..bytes.len());
        self.pending.push(Pending::Write(write));
    }

    pub(super) fn set_len(&mut self, len: usize) {
        Arc::make_mut(&mut self.data).resize(len, 0);
        self.pending.push(Pending::Length(len));
    }

    pub(super) fn sync(&mut self) {
        if !self.pending.is_empty() {
            self.durable = Arc::clone(&self.data);
            self.pending.clear();
        }
    }

    /// Makes the first `len` bytes durable.
    pub(super) fn sync_start(&mut self, len: usize) {
        if self.pending.iter().any(|pending| matches!(pending, Pending::Length(_))) {
            return self.sync();
        }
        let durable = Arc::make_mut(&mut self.durable);
        self.pending.retain_mut(|pending| {
            let Pending::Write(write) = pending else { return true };
            let within = len.saturating_sub(write.offset).min(write.bytes.len());
            write.apply(durable, 0..within);
            if within > 0 {
                write.offset += within;
                write.bytes = write.bytes[within..].into();
            }
            !write.bytes.is_empty()
        });
    }

    pub(super) fn freeze(&self) -> FrozenNode {
        FrozenNode { durable: Arc::clone(&self.durable), pending: self.pending.clone() }
    }
}

impl PendingWrite {
    /// Writes a range of the bytes to its offset.
    pub(super) fn apply(&self, data: &mut Vec<u8>, part: std::ops::Range<usize>) {
        let (start, end) = (self.offset + part.start, self.offset + part.end);
        if data.len() < end {
            data.resize(end, 0);
        }
        data[start..end].copy_from_slice(&self.bytes[part]);
    }
}
