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
//! A search reads a link and the key of most nodes that it visits: with the links in front both
//! mostly share a cache line. The height is kept in the upper bits of the key length, which needs
//! 17 bits; one of the bits between says whether [`Versions`] lie between header and key, as in
//! lists whose nodes may wait in a Membuffer before they are linked.

use std::cmp::Ordering::{self, Equal};
use std::ptr::{self, NonNull};

use crate::arena::{ALIGN, Arena};
use crate::entry::{Entry, SeqNo, kind_of, pack, seq_of};
use crate::skiplist::versions::Versions;
use crate::sync::{AtomicPtr, AtomicU64, Ordering as Memory, WrittenOnce};

const HEIGHT_SHIFT: u32 = 24;
const VERSIONED: u32 = 1 << 23;
const KEY_LEN_MASK: u32 = VERSIONED - 1;
const HEADER_BYTES: usize = size_of::<Node>();
const LINK_BYTES: usize = size_of::<Link>();

// A header behind any number of links is aligned.
const _: () = assert!(align_of::<Node>() <= ALIGN && LINK_BYTES.is_multiple_of(ALIGN));
// So are versions behind a header.
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

/// A link to the next node of a height, with a bound of that node's head.
///
/// `head` is never above the head of the node that `next` names: it is lowered before a smaller
/// node is linked. So a search whose key has a smaller head than the link needs not follow it.
#[repr(C)]
pub(crate) struct Link {
    pub(crate) next: AtomicPtr<Node>,
    pub(crate) head: AtomicU64,
}

impl Link {
    fn end() -> Self {
        Self { next: AtomicPtr::new(ptr::null_mut()), head: AtomicU64::new(u64::MAX) }
    }

    /// The next node and a bound of its head.
    ///
    /// The head is read after the node: what is read is then the bound of that node, or of one
    /// linked before it since, which is smaller.
    #[inline]
    pub(crate) fn load(&self) -> (*mut Node, u64) {
        let next = self.next.load(Memory::Acquire);
        (next, self.head.load(Memory::Relaxed))
    }

    /// Puts `node`, whose head is `head`, between this link and `next`. Fails if another node came
    /// in between.
    pub(crate) fn insert(&self, next: *mut Node, node: NonNull<Node>, head: u64) -> bool {
        // Before the node can be seen; release orders it before the exchange below.
        self.head.fetch_min(head, Memory::Relaxed);
        let link =
            self.next.compare_exchange(next, node.as_ptr(), Memory::Release, Memory::Relaxed);
        link.is_ok()
    }
}

/// Whether the nodes of a list have [`Versions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// They have not.
    Plain,
    /// They have.
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
    /// A node with all links at their end, linked to nothing.
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
            // SAFETY: the links are the first part of the allocation, which is aligned to 8.
            let link = unsafe { start.cast::<Link>().add(level) };
            // SAFETY: as above.
            unsafe { link.write(Link::end()) };
        }
        // SAFETY: the header lies behind the links, within the allocation.
        let node = unsafe { start.cast::<Link>().add(height) }.cast::<Node>();
        let flag = if layout == Layout::Versioned { VERSIONED } else { 0 };
        let header = Node {
            packed: 0,
            height_and_key_len: ((height as u32) << HEIGHT_SHIFT) | flag,
            value_len: 0,
            all: WrittenOnce::new(),
        };
        // SAFETY: freshly allocated for a node of this size, and aligned to 8.
        unsafe { node.write(header) };
        if layout == Layout::Versioned {
            // SAFETY: versions lie behind the header, within the allocation.
            let versions = unsafe { node.add(1) }.cast::<Versions>();
            // SAFETY: as above; aligned by the assertions of this module.
            unsafe { versions.write(Versions::new(room)) };
        }
        // SAFETY: no one else knows of the node, and the allocation has room for the contents.
        unsafe { Self::fill(node, layout, contents) };
        node
    }

    /// Writes what a node holds: its sequence number, kind, key and value. Its height stays.
    ///
    /// # Safety
    /// No one else reads or writes these parts of `node`, which has this layout and room for the
    /// contents.
    pub(crate) unsafe fn fill(node: NonNull<Node>, layout: Layout, contents: &Entry<'_>) {
        let Entry { key, seq, kind, value } = *contents;
        let start = node.as_ptr();
        // SAFETY: the header was written in `allocate`; no one else reads it now.
        let lengths = unsafe { (*start).height_and_key_len } & !KEY_LEN_MASK;
        // SAFETY: as above, and so for the next two.
        unsafe { (*start).packed = pack(seq, kind) };
        // Lengths are checked where a memtable is entered; they fit 17 and 32 bits.
        // SAFETY: as above.
        unsafe { (*start).height_and_key_len = lengths | key.len() as u32 };
        // SAFETY: as above.
        unsafe { (*start).value_len = value.len() as u32 };
        // SAFETY: what lies behind the header is within the allocation.
        let behind = unsafe { node.add(1) }.cast::<u8>();
        // SAFETY: the key lies behind the versions, within the allocation.
        let key_start = unsafe { behind.add(layout.bytes()) };
        // SAFETY: `key.len()` bytes are there, and no one reads them.
        unsafe { ptr::copy_nonoverlapping(key.as_ptr(), key_start.as_ptr(), key.len()) };
        // SAFETY: the value lies behind the key, within the allocation.
        let value_start = unsafe { key_start.add(key.len()) };
        // SAFETY: `value.len()` bytes are there, and no one reads them.
        unsafe { ptr::copy_nonoverlapping(value.as_ptr(), value_start.as_ptr(), value.len()) };
        // SAFETY: the header was just written.
        unsafe { node.as_ref() }.all.write();
    }
}

/// A node of a list whose arena is alive for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct NodeRef<'a> {
    node: NonNull<Node>,
    list: std::marker::PhantomData<&'a Arena>,
}

impl<'a> NodeRef<'a> {
    /// # Safety
    /// `node` was made by [`Node::allocate`] in an arena that lives for `'a`.
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
        // SAFETY: by `new`, and headers are never written again (rule 2 of the crate).
        let header: &'a Node = unsafe { self.node.as_ref() };
        header.all.read();
        header
    }

    /// Whether it has [`Versions`].
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
        // SAFETY: a node has a link before it for each level below its height.
        let link = unsafe { self.node.cast::<Link>().sub(level + 1) };
        // SAFETY: written in `allocate`, and changed only through its atomics.
        unsafe { link.as_ref() }
    }

    /// The node after it in the list of all.
    #[inline]
    pub(crate) fn next(self) -> Option<Self> {
        // SAFETY: links name nodes of the same arena, or nothing.
        NonNull::new(self.link(0).load().0).map(|node| unsafe { Self::new(node) })
    }

    #[inline]
    fn bytes(self, start: usize, len: usize) -> &'a [u8] {
        let has_versions = self.header().height_and_key_len & VERSIONED != 0;
        let before = if has_versions { size_of::<Versions>() } else { 0 };
        // SAFETY: key and value lie behind header and versions, within the allocation.
        let payload = unsafe { self.node.add(1) }.cast::<u8>();
        // SAFETY: as above.
        let start = unsafe { payload.add(before + start) };
        // SAFETY: `len` bytes there were written in `allocate`, and never again.
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
    pub(crate) fn entry(self) -> Entry<'a> {
        let kind = kind_of(self.header().packed);
        Entry { key: self.key(), seq: self.seq(), kind, value: self.value() }
    }

    /// The order of this node against `(key, seq)`: by key, then newer first.
    #[inline]
    pub(crate) fn compare(self, key: &[u8], seq: SeqNo) -> Ordering {
        match self.key().cmp(key) {
            Equal => seq.cmp(&self.seq()),
            other => other,
        }
    }
}
