//! A file in memory: what is in it, what of that is durable, and what was written since.

use std::sync::Arc;

/// The identity of a file, whatever its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(pub(super) u64);

/// A change that is not durable yet.
#[derive(Debug, Clone)]
pub(super) enum Pending {
    Write(PendingWrite),
    /// A new length; what the file gains by it is zeros.
    Length(usize),
}

/// Bytes that are not durable yet.
#[derive(Debug, Clone)]
pub(super) struct PendingWrite {
    pub(super) offset: usize,
    pub(super) bytes: Arc<[u8]>,
}

/// Held by who has a file open; it counts the holders.
#[derive(Debug, Clone, Default)]
pub(super) struct Open {
    holders: Arc<()>,
}

/// The contents of a file.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Shared with what is durable, and with who maps the file, until it is written to.
    data: Arc<Vec<u8>>,
    durable: Arc<Vec<u8>>,
    pending: Vec<Pending>,
    open: Open,
}

/// What is needed to make crash images of a file.
#[derive(Debug, Clone)]
pub(super) struct FrozenNode {
    pub(super) durable: Arc<Vec<u8>>,
    pub(super) pending: Vec<Pending>,
}

impl Node {
    /// A file whose contents are durable.
    pub(super) fn durable(data: Arc<Vec<u8>>) -> Self {
        Self { durable: Arc::clone(&data), data, ..Self::default() }
    }

    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// The contents as they are, also if they are written to later.
    pub(super) fn shared(&self) -> Arc<Vec<u8>> {
        Arc::clone(&self.data)
    }

    /// For who opens the file.
    pub(super) fn open(&self) -> Open {
        self.open.clone()
    }

    pub(super) fn is_open(&self) -> bool {
        Arc::strong_count(&self.open.holders) > 1
    }

    /// Other contents, durable at once.
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

    pub(super) fn freeze(&self) -> FrozenNode {
        FrozenNode { durable: Arc::clone(&self.durable), pending: self.pending.clone() }
    }
}

impl PendingWrite {
    /// Writes the given part of the bytes to where it belongs.
    pub(super) fn apply(&self, data: &mut Vec<u8>, part: std::ops::Range<usize>) {
        let (start, end) = (self.offset + part.start, self.offset + part.end);
        if data.len() < end {
            data.resize(end, 0);
        }
        data[start..end].copy_from_slice(&self.bytes[part]);
    }
}
