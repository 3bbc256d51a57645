//! Nodes of the skip-list and their links.
//!
//! A node is one allocation: links from the top height down to 0, header, key, value.
//!
//! ```text
//! +------------+-----+--------+--------+---------+---------+-----+-------+
//! | link h - 1 | ... | link 0 | packed | key len | val len | key | value |
//! | 16 B       |     | 16 B   | u64    | u32     | u32     |     |       |
//! +------------+-----+--------+--------+---------+---------+-----+-------+
//!                             ^ a node's address
//! ```
//!
//! A search reads a link and the key of most nodes it visits. With the links in front of the
//! header, both usually share a cache line. The upper bits of the key length hold the height (the
//! length needs 17 bits), and a bit between them says whether [`Versions`] lie between header and
//! key, which is the case in a FloDB memtable.
//!
//! Invariants:
//! 1. A node is laid out as above within one allocation, and its height and layout never change.
//! 2. Header, key and value are written only by [`Node::fill`], while no other thread can read them
//!    (crate rule 2).

use std::cmp::Ordering::{self, Equal};
use std::ptr::{self, NonNull};

use crate::arena::Arena;
use crate::entry::{Entry, EntryKind, SeqNo, kind_of, pack, seq_of};
use crate::pool::ALIGN;
use crate::skiplist::versions::Versions;
use crate::sync::{AtomicPtr, AtomicU64, Ordering as Memory, WrittenOnce};

const HEIGHT_SHIFT: u32 = 24;
const VERSIONED: u32 = 1 << 23;
const KEY_LEN_MASK: u32 = VERSIONED - 1;
const HEADER_BYTES: usize = size_of::<Node>();
const LINK_BYTES: usize = size_of::<Link>();

// A header behind any number of links is aligned.
const _: () = assert!(align_of::<Node>() <= ALIGN && LINK_BYTES.is_multiple_of(ALIGN));
// Versions behind a header are aligned.
const _: () = assert!(align_of::<Versions>() <= ALIGN && HEADER_BYTES.is_multiple_of(ALIGN));

const _: () = assert!(crate::entry::MAX_KEY_LEN < KEY_LEN_MASK as usize);
#[cfg(not(loom))]
const _: () = assert!(HEADER_BYTES == 16 && LINK_BYTES == 16);

/// The header of a node. Its links lie before it in memory, key and value after it.
#[repr(C)]
pub(crate) struct Node {
    packed: u64,
    height_and_key_len: u32,
    value_len: u32,
    all: WrittenOnce,
}

/// A link to the next node of a height, with a lower bound of that node's head.
///
/// `head` is never above the head of the node that `next` names, because it is lowered before a
/// smaller node is linked. A search for a key whose head is smaller need not follow the link.
#[repr(C)]
pub(crate) struct Link {
    pub(crate) next: AtomicPtr<Node>,
    pub(crate) head: AtomicU64,
}

impl Link {
    fn end() -> Self {
        Self { next: AtomicPtr::new(ptr::null_mut()), head: AtomicU64::new(u64::MAX) }
    }

    /// Returns the next node and a lower bound of its head.
    ///
    /// The head is loaded after the node, so it bounds the head of that node, or of a smaller
    /// node that was linked before it in the meantime.
    #[inline]
    pub(crate) fn load(&self) -> (*mut Node, u64) {
        // Acquire pairs with the release in `insert`: the node is seen filled, and its bound set.
        // Relaxed for the head: the bound only falls, and a smaller one is still a lower bound.
        let next = self.next.load(Memory::Acquire);
        (next, self.head.load(Memory::Relaxed))
    }

    /// Links `node`, whose head is `head`, between this link and `next`. Returns false if another
    /// node was linked there meanwhile.
    pub(crate) fn insert(&self, next: *mut Node, node: NonNull<Node>, head: u64) -> bool {
        // Lowered before the node can be found. Relaxed, because the release of the exchange below
        // orders it before the link; that release pairs with the acquire in `load`.
        self.head.fetch_min(head, Memory::Relaxed);
        let link =
            self.next.compare_exchange(next, node.as_ptr(), Memory::Release, Memory::Relaxed);
        link.is_ok()
    }
}

/// Whether nodes have [`Versions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Nodes without versions, which are never refilled.
    Plain,
    /// Nodes with versions, which FloDB reclaims and refills before they are linked.
    Versioned,
}

impl Layout {
    const fn bytes(self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Versioned => size_of::<Versions>(),
        }
    }
}

impl Node {
    /// Allocates and fills a node with null links.
    pub(crate) fn allocate(
        arena: &Arena,
        layout: Layout,
        height: usize,
        contents: &Entry<'_>,
    ) -> NonNull<Node> {
        let room = contents.data_bytes().next_multiple_of(ALIGN);
        let size = HEADER_BYTES + layout.bytes() + height * LINK_BYTES + room;
        let start = arena.allocate(size);
        for level in 0..height {
            // SAFETY: `size` covers `height` links at the start of the allocation, which is aligned
            // to 8.
            let link = unsafe { start.cast::<Link>().add(level) };
            // SAFETY: the allocation is new, so no other thread knows this address; it has room for
            // the link.
            unsafe { link.write(Link::end()) };
        }
        // SAFETY: the header lies behind the links, within the `size` bytes (invariant 1).
        let node = unsafe { start.cast::<Link>().add(height) }.cast::<Node>();
        let flag = if layout == Layout::Versioned { VERSIONED } else { 0 };
        let header = Node {
            packed: 0,
            height_and_key_len: ((height as u32) << HEIGHT_SHIFT) | flag,
            value_len: 0,
            all: WrittenOnce::new(),
        };
        // SAFETY: the allocation is new, has room for the header here, and is aligned to 8.
        unsafe { node.write(header) };
        if layout == Layout::Versioned {
            // SAFETY: `size` covers the versions behind the header.
            let versions = unsafe { node.add(1) }.cast::<Versions>();
            // SAFETY: the allocation is new; the assertions of this module show that the address is
            // aligned.
            unsafe { versions.write(Versions::new(room)) };
        }
        // SAFETY: no other thread knows the address yet, and `size` covers `room` bytes for the
        // contents.
        unsafe { Self::fill(node, layout, contents) };
        node
    }

    /// Writes sequence number, kind, key and value of a node. Its height and layout do not change.
    ///
    /// # Safety
    /// No other thread reads or writes these parts of `node` (crate rule 2), and `node` has this
    /// layout and room for the contents.
    pub(crate) unsafe fn fill(node: NonNull<Node>, layout: Layout, contents: &Entry<'_>) {
        let Entry { key, seq, kind, value } = *contents;
        let start = node.as_ptr();
        // SAFETY: `allocate` wrote the header, and the caller guarantees that no other thread
        // writes it.
        let lengths = unsafe { (*start).height_and_key_len } & !KEY_LEN_MASK;
        // SAFETY: the caller guarantees that no other thread accesses the header.
        unsafe { (*start).packed = pack(seq, kind) };
        // `Memtable` checks lengths on entry; they fit 17 and 32 bits. SAFETY: the caller
        // guarantees that no other thread accesses the header.
        unsafe { (*start).height_and_key_len = lengths | key.len() as u32 };
        // SAFETY: the caller guarantees that no other thread accesses the header.
        unsafe { (*start).value_len = value.len() as u32 };
        // SAFETY: the end of the header is within the allocation (invariant 1).
        let behind = unsafe { node.add(1) }.cast::<u8>();
        // SAFETY: `layout` is that of the node, so its versions end within the allocation
        // (invariant 1).
        let key_start = unsafe { behind.add(layout.bytes()) };
        // SAFETY: the caller guarantees room for the key, which no other thread accesses; `key` is
        // not in the node, because the node is not in use.
        unsafe { ptr::copy_nonoverlapping(key.as_ptr(), key_start.as_ptr(), key.len()) };
        // SAFETY: the caller guarantees room for key and value, so the end of the key is in the
        // allocation.
        let value_start = unsafe { key_start.add(key.len()) };
        // SAFETY: the caller guarantees room for the value, which no other thread accesses; `value`
        // is not in the node, because the node is not in use.
        unsafe { ptr::copy_nonoverlapping(value.as_ptr(), value_start.as_ptr(), value.len()) };
        // SAFETY: the header is initialized, and no other thread writes it.
        unsafe { node.as_ref() }.all.write();
    }
}

/// A readable node whose arena lives for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct NodeRef<'a> {
    node: NonNull<Node>,
    list: std::marker::PhantomData<&'a Arena>,
}

impl<'a> NodeRef<'a> {
    /// # Safety
    /// `node` was allocated by [`Node::allocate`] in an arena that lives for `'a`, and is not
    /// refilled while the reference or anything borrowed from it is in use (crate rule 2): it has
    /// no versions, is permanent or pinned, or its bucket is locked by the caller.
    #[inline]
    pub(crate) unsafe fn new(node: NonNull<Node>) -> Self {
        Self { node, list: std::marker::PhantomData }
    }

    #[inline]
    pub(crate) fn as_ptr(self) -> NonNull<Node> {
        self.node
    }

    #[inline]
    fn header(self) -> &'a Node {
        // SAFETY: by the contract of `new` the arena lives for `'a`, and the node is not refilled
        // while this reference is in use.
        let header: &'a Node = unsafe { self.node.as_ref() };
        header.all.read();
        header
    }

    /// Returns the layout that the node was allocated with.
    pub(super) fn layout(self) -> Layout {
        let has_versions = self.header().height_and_key_len & VERSIONED != 0;
        if has_versions { Layout::Versioned } else { Layout::Plain }
    }

    #[inline]
    pub(crate) fn height(self) -> usize {
        (self.header().height_and_key_len >> HEIGHT_SHIFT) as usize
    }

    #[inline]
    pub(crate) fn link(self, level: usize) -> &'a Link {
        debug_assert!(level < self.height());
        // SAFETY: links lie in front of the header, one for each level below the height (invariant
        // 1). `level` is below it, because callers reach a node through a link of this level, or it
        // is a head or a new node of sufficient height.
        let link = unsafe { self.node.cast::<Link>().sub(level + 1) };
        // SAFETY: `allocate` wrote the link, which changes only by atomic operations.
        unsafe { link.as_ref() }
    }

    /// Returns the next node at height 0.
    #[inline]
    pub(crate) fn next(self) -> Option<Self> {
        // SAFETY: links name nodes of the same arena, or are null. A linked node has no versions or
        // is permanent, so it is not refilled (crate rule 2).
        NonNull::new(self.link(0).load().0).map(|node| unsafe { Self::new(node) })
    }

    #[inline]
    fn bytes(self, start: usize, len: usize) -> &'a [u8] {
        let has_versions = self.header().height_and_key_len & VERSIONED != 0;
        let before = if has_versions { size_of::<Versions>() } else { 0 };
        // SAFETY: the end of the header is within the allocation (invariant 1).
        let payload = unsafe { self.node.add(1) }.cast::<u8>();
        // SAFETY: callers pass a range within key and value, which lie behind header and versions.
        let start = unsafe { payload.add(before + start) };
        // SAFETY: `fill` wrote `len` bytes there, and by the contract of `new` they are not written
        // again while the reference is in use.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }

    #[inline]
    fn key_len(self) -> usize {
        (self.header().height_and_key_len & KEY_LEN_MASK) as usize
    }

    #[inline]
    pub(crate) fn key(self) -> &'a [u8] {
        self.bytes(0, self.key_len())
    }

    #[inline]
    pub(crate) fn value(self) -> &'a [u8] {
        self.bytes(self.key_len(), self.header().value_len as usize)
    }

    #[inline]
    pub(crate) fn seq(self) -> SeqNo {
        seq_of(self.header().packed)
    }

    #[inline]
    pub(crate) fn version(self) -> (SeqNo, EntryKind) {
        let packed = self.header().packed;
        (seq_of(packed), kind_of(packed))
    }

    #[inline]
    pub(crate) fn entry(self) -> Entry<'a> {
        let kind = kind_of(self.header().packed);
        Entry { key: self.key(), seq: self.seq(), kind, value: self.value() }
    }

    /// Compares this node with `(key, seq)`: by key, then newer first.
    #[inline]
    pub(crate) fn compare(self, key: &[u8], seq: SeqNo) -> Ordering {
        match self.key().cmp(key) {
            Equal => seq.cmp(&self.seq()),
            other => other,
        }
    }
}
