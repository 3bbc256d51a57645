//! The version part of a FloDB node: the link to the next older version of its key, and a state
//! word that counts pins.
//!
//! A node waits in the Membuffer before it is linked into the lower level. While it waits, a writer
//! may reclaim it and refill its memory with a newer version. A reader therefore pins a node and
//! then checks that the pointer it followed still names the node. A writer that reclaims a node
//! overwrites that pointer and then looks for pins. A late pin on a reclaimed node is harmless
//! because the memory of a node only ever holds nodes of the same layout, and the state word
//! changes only by atomic operations.
//!
//! A node is *permanent* once it is in the lower level or on its way there. It is *reachable*
//! through a slot of a bucket, through `older` of the next newer version, or through a leaf of the
//! lower level. A B-link tree removes entries again (`btree::in_place`); a skip-list does not.
//!
//! Invariants:
//! 1. A permanent node is not refilled: `Membuffer` reclaims only nodes that are not permanent,
//!    under the bucket lock that setting MOVING on a reachable node also needs. Only
//!    [`Versions::detach`] clears MOVING and LINKED, and only in a node that was removed from the
//!    lower level and is in no chain.
//! 2. A node is refilled only by a thread that made it unreachable, or took it from a free list of
//!    such nodes, and then saw [`Versions::is_free`] return true.
//! 3. A pin that [`Pin::new`] returns keeps its node from being refilled until it is dropped. The
//!    reader adds the pin, then loads the pointer; the writer overwrites the pointer, then loads
//!    the state. In a leaf, both use the counter of the leaf instead of the pointer. All four
//!    operations are sequentially consistent, so either the writer sees the pin
//!    and does not refill the node, or the reader sees the overwritten pointer and gives up the
//!    pin. If the pointer names the node again, the node was refilled and republished in between,
//!    and the load acquires the new contents.
//! 4. A node that was inserted into the lower level directly is in no chain.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::node::{Node, NodeRef};
use crate::sync::{AtomicPtr, AtomicU64, Ordering, pin_fence};

/// The state word holds the number of pins in the bits below this one.
const FLAGS_SHIFT: u32 = 28;
const PINS: u64 = (1 << FLAGS_SHIFT) - 1;
/// With more pins than this, a node is retained for good, so that the count cannot overflow.
const PINS_MAX: u64 = 1 << (FLAGS_SHIFT - 1);
/// The node is being linked into the lower level.
const MOVING: u64 = 1 << FLAGS_SHIFT;
/// The node is linked into the lower level.
const LINKED: u64 = 1 << (FLAGS_SHIFT + 1);
/// The node replaced a version, and no drain has passed it over since.
const HOT: u64 = 1 << (FLAGS_SHIFT + 2);
/// A reference without a pin exists, so the node is never refilled.
const RETAINED: u64 = 1 << (FLAGS_SHIFT + 3);
/// The bits above hold the bytes allocated for key and value.
const CAPACITY_SHIFT: u32 = 32;

/// A node's record of the next older version: a node or none, and whether there is a *gap*, because
/// versions between the two, or below the last one, were reclaimed.
///
/// A reclaimed node is *detached*: it names no older node, so that a reader that holds a pin on it
/// cannot continue to a node that may be refilled. While it is free, it names the next free one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Older(*mut Node);

const GAP: usize = 1;
const DETACHED: usize = 2;

impl Older {
    /// Older versions, if any, are all in the lower level.
    pub(crate) const NONE: Self = Self(std::ptr::null_mut());
    // No node has this address, because nodes are aligned to 8.
    pub(crate) const DETACHED: Self = Self(std::ptr::without_provenance_mut(DETACHED));

    pub(crate) fn node_at(node: NonNull<Node>) -> Self {
        Self(node.as_ptr())
    }

    /// Returns the record of a free node, which names the next free one of its list.
    pub(crate) fn detached_before(next: Option<NonNull<Node>>) -> Self {
        let next = next.map_or(std::ptr::null_mut(), NonNull::as_ptr);
        Self(next.map_addr(|address| address | DETACHED))
    }

    /// Returns the free node that a free node names.
    pub(crate) fn next_free(self) -> Option<NonNull<Node>> {
        NonNull::new(self.0.map_addr(|address| address & !DETACHED))
    }

    /// Adds a gap.
    pub(crate) fn with_gap(self) -> Self {
        Self(self.0.map_addr(|address| address | GAP))
    }

    /// Returns true if versions next to the node were reclaimed, or the node itself was.
    pub(crate) fn has_gap(self) -> bool {
        self.0.addr() & (GAP | DETACHED) != 0
    }

    pub(crate) fn is_detached(self) -> bool {
        self.0.addr() & DETACHED != 0
    }

    pub(crate) fn node(self) -> Option<NonNull<Node>> {
        if self.is_detached() {
            return None;
        }
        NonNull::new(self.0.map_addr(|address| address & !GAP))
    }
}

/// The version part; it lies between the header of a node and its key.
#[repr(C)]
pub(crate) struct Versions {
    older: AtomicPtr<Node>,
    state: AtomicU64,
}

/// Whether a version replaced another one. A drain of cold slots passes over a hot version once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Temperature {
    Cold,
    Hot,
}

impl Versions {
    pub(super) fn new(capacity: usize) -> Self {
        // `MAX_KEY_LEN + MAX_VALUE_LEN` is below 4 GiB.
        let state = (capacity as u64) << CAPACITY_SHIFT;
        Self { older: AtomicPtr::new(std::ptr::null_mut()), state: AtomicU64::new(state) }
    }

    /// Returns the bytes allocated for key and value.
    pub(crate) fn capacity(&self) -> usize {
        (self.state.load(Ordering::Relaxed) >> CAPACITY_SHIFT) as usize
    }

    #[inline]
    pub(crate) fn older(&self) -> Older {
        // SeqCst: this is the reader's second step of invariant 3. As an acquire, it pairs with the
        // store in `set_older` that published the node.
        Older(self.older.load(Ordering::SeqCst))
    }

    /// Publishes the node that `older` names, and makes the node named before unreachable.
    pub(crate) fn set_older(&self, older: Older) {
        // SeqCst: this is the writer's first step of invariant 3. As a release, it pairs with the
        // load in `older`, so that a reader sees the named node filled.
        self.older.store(older.0, Ordering::SeqCst);
    }

    /// Returns true if the node is permanent: in the lower level or on its way there (invariant 1).
    #[inline]
    pub(crate) fn is_permanent(&self) -> bool {
        // Acquire pairs with the release in `set_moving`: the caller sees the node filled, and
        // reads it without a pin.
        self.state.load(Ordering::Acquire) & (MOVING | LINKED) != 0
    }

    /// Returns true if a search of the lower level finds the node.
    #[inline]
    pub(crate) fn is_linked(&self) -> bool {
        // Acquire pairs with the release in `set_linked`: the caller sees the links to the node.
        self.state.load(Ordering::Acquire) & LINKED != 0
    }

    /// Makes the node permanent before it is linked. The caller holds the lock of its bucket, or
    /// the node is not reachable yet.
    pub(crate) fn set_moving(&self) {
        // Release pairs with the acquire in `is_permanent`.
        self.state.fetch_or(MOVING, Ordering::Release);
    }

    /// Records that the node is linked into the lower level.
    pub(crate) fn set_linked(&self) {
        // Release pairs with the acquire in `is_linked`.
        self.state.fetch_or(LINKED, Ordering::Release);
    }

    /// Makes a node unreachable for readers that hold a pin on it, and no longer permanent. The
    /// caller has overwritten every pointer to it.
    pub(crate) fn detach(&self) {
        self.set_older(Older::DETACHED);
        // Release pairs with the load in `is_free`.
        self.state.fetch_and(!(MOVING | LINKED | HOT), Ordering::Release);
    }

    /// Clears HOT, and returns whether it was set.
    pub(crate) fn take_hot(&self) -> bool {
        // Relaxed: HOT only influences what a drain passes over.
        self.state.load(Ordering::Relaxed) & HOT != 0
            && self.state.fetch_and(!HOT, Ordering::Relaxed) & HOT != 0
    }

    /// Returns true if an unreachable node may be refilled: it has no pins, is not retained and is
    /// not permanent.
    pub(crate) fn is_free(&self) -> bool {
        // SeqCst: this is the writer's second step of invariant 3. As an acquire, it pairs with the
        // releases in `Pin::drop`, so that the reads of past pin holders happen before the refill.
        pin_fence();
        self.state.load(Ordering::SeqCst) & (PINS | RETAINED | MOVING | LINKED) == 0
    }

    /// Returns true if the node is never refilled, because a reference without a pin exists.
    pub(crate) fn is_retained(&self) -> bool {
        // Relaxed: `is_free` decides.
        self.state.load(Ordering::Relaxed) & RETAINED != 0
    }

    /// Initializes a node that is not reachable: `older` is its next older version.
    #[inline]
    pub(crate) fn init(&self, older: Older, temperature: Temperature) {
        let is_hot = self.state.load(Ordering::Relaxed) & HOT != 0;
        // Read-modify-write, because readers with an outdated pointer may add and drop pins
        // meanwhile. Relaxed: HOT orders nothing.
        match temperature {
            Temperature::Hot if !is_hot => _ = self.state.fetch_or(HOT, Ordering::Relaxed),
            Temperature::Cold if is_hot => _ = self.state.fetch_and(!HOT, Ordering::Relaxed),
            Temperature::Hot | Temperature::Cold => {}
        }
        // Relaxed: a later SeqCst store publishes the node, and readers load `older` only after
        // they found it by that store.
        self.older.store(older.0, Ordering::Relaxed);
    }

    /// Keeps the node from ever being refilled. The caller holds a pin.
    pub(crate) fn retain(&self) {
        // Any ordering will do: the caller drops its pin later, so in the modification order of the
        // state `is_free` meets RETAINED before it meets a count of zero.
        self.state.fetch_or(RETAINED, Ordering::SeqCst);
    }
}

/// Keeps a node from being refilled while the pin exists (invariant 3).
#[derive(Debug)]
pub(crate) struct Pin(Option<NonNull<Versions>>);

impl Pin {
    /// The pin of a node that is never refilled.
    pub(crate) const NONE: Self = Self(None);

    /// Pins a node that the caller reached through a pointer; `is_still_reachable` loads that
    /// pointer again. Returns `None` if it no longer names the node.
    ///
    /// # Safety
    /// The node was allocated with [`super::Layout::Versioned`] and its arena outlives the pin.
    /// `is_still_reachable` loads, with SeqCst, a pointer to the node that is overwritten before the
    /// node is freed, or the counter that changes with it.
    #[inline]
    pub(crate) unsafe fn new(
        node: NonNull<Node>,
        is_still_reachable: impl FnOnce() -> bool,
    ) -> Option<Self> {
        // SAFETY: the caller guarantees the layout and the arena. The node may have been reclaimed,
        // which does not matter because its versions change only by atomic operations.
        let versions = unsafe { versions_of(node) };
        // SeqCst: this is the reader's first step of invariant 3, and `is_still_reachable` the
        // second.
        let before = versions.state.fetch_add(1, Ordering::SeqCst);
        pin_fence();
        // Derived from the pointer to the node, not from the reference to its versions, because the
        // holder of the pin reaches key and value from here. SAFETY: the versions lie right
        // behind the header, within the allocation of the node.
        let pin = Self(Some(unsafe { node.add(1) }.cast::<Versions>()));
        if !is_still_reachable() {
            return None;
        }
        if before & PINS >= PINS_MAX {
            versions.retain();
            return Some(Self::NONE);
        }
        Some(pin)
    }

    /// Gives up the pin without unpinning the node, for [`Pin::from_raw`]. The pointer may be used
    /// to reach the key and the value of the node.
    pub(crate) fn into_raw(self) -> Option<NonNull<Versions>> {
        ManuallyDrop::new(self).0
    }

    /// # Safety
    /// `versions` came from [`Pin::into_raw`], is turned into a pin once, and the arena of the node
    /// outlives the pin.
    pub(crate) unsafe fn from_raw(versions: Option<NonNull<Versions>>) -> Self {
        Self(versions)
    }

    fn versions(&self) -> Option<&Versions> {
        // SAFETY: `new` and `from_raw` require that the arena outlives the pin, and versions change
        // only by atomic operations.
        self.0.map(|versions| unsafe { versions.as_ref() })
    }
}

impl Clone for Pin {
    fn clone(&self) -> Self {
        let Some(versions) = self.versions() else { return Self::NONE };
        // Relaxed: this pin keeps the count above zero until the new one is counted.
        if versions.state.fetch_add(1, Ordering::Relaxed) & PINS >= PINS_MAX {
            versions.retain();
            // Release pairs with the acquire in `is_free`, as in `drop`.
            versions.state.fetch_sub(1, Ordering::Release);
            return Self::NONE;
        }
        Self(self.0)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Some(versions) = self.versions() {
            // Release pairs with the acquire in `is_free`: reads through this pin happen before a
            // refill.
            versions.state.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Returns the versions of a node that may be reclaimed meanwhile.
///
/// # Safety
/// The node was allocated with [`super::Layout::Versioned`] in an arena that lives for `'a`.
#[inline]
pub(crate) unsafe fn versions_of<'a>(node: NonNull<Node>) -> &'a Versions {
    // SAFETY: the versions lie right behind the header, within the allocation.
    let versions = unsafe { node.add(1) }.cast::<Versions>();
    // SAFETY: `Node::allocate` wrote the versions, which change only by atomic operations, and the
    // caller guarantees that the arena lives for `'a` (crate rule 1).
    unsafe { versions.as_ref() }
}

impl<'a> NodeRef<'a> {
    /// # Safety
    /// The node was allocated with [`super::Layout::Versioned`].
    #[inline]
    pub(crate) unsafe fn versions(self) -> &'a Versions {
        // SAFETY: the caller guarantees the layout, and `NodeRef::new` that the arena lives for
        // `'a`.
        unsafe { versions_of(self.as_ptr()) }
    }
}
