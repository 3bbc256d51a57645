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

/// The contents of a file.
#[derive(Debug, Default)]
pub(super) struct Node {
    data: Vec<u8>,
    durable: Arc<Vec<u8>>,
    pending: Vec<Pending>,
}

/// What is needed to make crash images of a file.
#[derive(Debug, Clone)]
pub(super) struct FrozenNode {
    pub(super) durable: Arc<Vec<u8>>,
    pub(super) pending: Vec<Pending>,
}

impl Node {
    /// A file whose contents are durable.
    pub(super) fn durable(data: Vec<u8>) -> Self {
        Self { durable: Arc::new(data.clone()), data, pending: Vec::new() }
    }

    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let write = PendingWrite { offset, bytes: bytes.into() };
        write.apply(&mut self.data, 0..bytes.len());
        self.pending.push(Pending::Write(write));
    }

    pub(super) fn set_len(&mut self, len: usize) {
        self.data.resize(len, 0);
        self.pending.push(Pending::Length(len));
    }

    pub(super) fn sync(&mut self) {
        if !self.pending.is_empty() {
            self.durable = Arc::new(self.data.clone());
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
