//! What a node has that may wait in a Membuffer: the version before it, and who reads it.
//!
//! Such a node may be written anew once no one can find it and no one reads it. So who reads one
//! that is not on its way into a list pins it first, and then looks whether it is still where it
//! was found; who takes one away first takes it from where it is found, then looks for pins. The
//! memory of nodes is never used for anything else, so that pinning one that was taken away does
//! no harm.
//!
//! Invariants:
//! 1. A node that is [`Versions::is_permanent`] stays so, and is not written again.
//! 2. A node is written only by who took it from all places where it could be found and saw no pin
//!    since.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::node::{Node, NodeRef};
use crate::sync::{AtomicPtr, AtomicU64, Ordering, pin_fence};

/// Pins are counted below this bit.
const FLAGS_SHIFT: u32 = 28;
const PINS: u64 = (1 << FLAGS_SHIFT) - 1;
/// More pins than this, and a node is kept for good.
const PINS_MAX: u64 = 1 << (FLAGS_SHIFT - 1);
/// It is being linked into the list.
const MOVING: u64 = 1 << FLAGS_SHIFT;
/// It is linked into the list.
const LINKED: u64 = 1 << (FLAGS_SHIFT + 1);
/// It replaced a version since it was last passed by a drain.
const HOT: u64 = 1 << (FLAGS_SHIFT + 2);
/// Someone holds a reference to it that is not counted.
const RETAINED: u64 = 1 << (FLAGS_SHIFT + 3);
/// The bytes that it has for key and value.
const CAPACITY_SHIFT: u32 = 32;

/// The version before a node, as seen from it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Older {
    /// None that is not in the list.
    None,
    /// Versions were forgotten: who wants one of before finds none.
    Reclaimed,
    /// This one.
    Node(NonNull<Node>),
}

/// Lies between the header of a node and its key.
#[repr(C)]
pub(crate) struct Versions {
    older: AtomicPtr<Node>,
    state: AtomicU64,
}

/// Whether a version replaces another: then it is passed over once by a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Temperature {
    Cold,
    Hot,
}

fn reclaimed_marker() -> *mut Node {
    // An address that no node has.
    std::ptr::without_provenance_mut(1)
}

fn address_of(older: Older) -> *mut Node {
    match older {
        Older::None => std::ptr::null_mut(),
        Older::Reclaimed => reclaimed_marker(),
        Older::Node(node) => node.as_ptr(),
    }
}

impl Versions {
    pub(super) fn new(capacity: usize) -> Self {
        // Keys and values together are less than 4 GiB.
        let state = (capacity as u64) << CAPACITY_SHIFT;
        Self { older: AtomicPtr::new(std::ptr::null_mut()), state: AtomicU64::new(state) }
    }

    /// The bytes that the node has for key and value.
    pub(crate) fn capacity(&self) -> usize {
        (self.state.load(Ordering::Relaxed) >> CAPACITY_SHIFT) as usize
    }

    #[inline]
    pub(crate) fn older(&self) -> Older {
        // Sequentially consistent with `set_older`: see `pin`.
        let older = self.older.load(Ordering::SeqCst);
        match NonNull::new(older) {
            None => Older::None,
            Some(_) if older == reclaimed_marker() => Older::Reclaimed,
            Some(node) => Older::Node(node),
        }
    }

    pub(crate) fn set_older(&self, older: Older) {
        self.older.store(address_of(older), Ordering::SeqCst);
    }

    /// Whether the node is in the list, or on its way there: then it stays as it is.
    #[inline]
    pub(crate) fn is_permanent(&self) -> bool {
        // Acquire pairs with the release of who links it.
        self.state.load(Ordering::Acquire) & (MOVING | LINKED) != 0
    }

    #[inline]
    pub(crate) fn is_linked(&self) -> bool {
        self.state.load(Ordering::Acquire) & LINKED != 0
    }

    /// It is being linked; under the lock of its bucket.
    pub(crate) fn set_moving(&self) {
        // Release: who sees it may read the node without a pin.
        self.state.fetch_or(MOVING, Ordering::Release);
    }

    /// It is linked: who sees this finds it in the list.
    pub(crate) fn set_linked(&self) {
        self.state.fetch_or(LINKED, Ordering::Release);
    }

    /// Whether it was hot; it no longer is.
    pub(crate) fn take_hot(&self) -> bool {
        self.state.load(Ordering::Relaxed) & HOT != 0
            && self.state.fetch_and(!HOT, Ordering::Relaxed) & HOT != 0
    }

    /// Whether a node that no one can find any more may be written.
    pub(crate) fn is_free(&self) -> bool {
        // Sequentially consistent with `pin`; acquires what readers did before they let go.
        pin_fence();
        self.state.load(Ordering::SeqCst) & (PINS | RETAINED | MOVING | LINKED) == 0
    }

    /// It begins anew, behind `older`; where it is hot, in its place. No one can find it yet.
    #[inline]
    pub(crate) fn init(&self, older: Older, temperature: Temperature) {
        let is_hot = self.state.load(Ordering::Relaxed) & HOT != 0;
        // Exchanged, as others may still pin it, in vain.
        match temperature {
            Temperature::Hot if !is_hot => _ = self.state.fetch_or(HOT, Ordering::Relaxed),
            Temperature::Cold if is_hot => _ = self.state.fetch_and(!HOT, Ordering::Relaxed),
            Temperature::Hot | Temperature::Cold => {}
        }
        // Relaxed: who finds the node finds it by what is stored later.
        self.older.store(address_of(older), Ordering::Relaxed);
    }

    /// A reference to the node is given away that is not counted.
    pub(crate) fn retain(&self) {
        self.state.fetch_or(RETAINED, Ordering::SeqCst);
    }
}

/// Keeps a node as it is, where that is needed.
#[derive(Debug)]
pub(crate) struct Pin(Option<NonNull<Versions>>);

impl Pin {
    /// For what never changes.
    pub(crate) const NONE: Self = Self(None);

    /// Pins a node that was found somewhere; `None` if it is no longer there.
    ///
    /// # Safety
    /// The node was made with versions, and its arena outlives the pin.
    #[inline]
    pub(crate) unsafe fn new(
        node: NonNull<Node>,
        is_still_reachable: impl FnOnce() -> bool,
    ) -> Option<Self> {
        // SAFETY: versions are never written but through atomics.
        let versions = unsafe { versions_of(node) };
        if versions.is_permanent() {
            return is_still_reachable().then_some(Self::NONE);
        }
        // Sequentially consistent: either who takes the node away sees this pin, or it is seen
        // here that the node is no longer there.
        let before = versions.state.fetch_add(1, Ordering::SeqCst);
        pin_fence();
        // Not made from the reference: who has the pin may go on from there to key and value.
        // SAFETY: they lie right behind the header.
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

    /// Leaves the node pinned; to be given to [`Pin::from_raw`]. What is pinned lies in the node,
    /// and may be used to reach its key and value.
    pub(crate) fn into_raw(self) -> Option<NonNull<Versions>> {
        ManuallyDrop::new(self).0
    }

    /// # Safety
    /// It came from [`Pin::into_raw`], and the arena of the node outlives the pin.
    pub(crate) unsafe fn from_raw(versions: Option<NonNull<Versions>>) -> Self {
        Self(versions)
    }

    fn versions(&self) -> Option<&Versions> {
        // SAFETY: the arena outlives the pin, by `new`.
        self.0.map(|versions| unsafe { versions.as_ref() })
    }
}

impl Clone for Pin {
    fn clone(&self) -> Self {
        let Some(versions) = self.versions() else { return Self::NONE };
        // Relaxed: it is pinned already.
        if versions.state.fetch_add(1, Ordering::Relaxed) & PINS >= PINS_MAX {
            versions.retain();
            versions.state.fetch_sub(1, Ordering::Release);
            return Self::NONE;
        }
        Self(self.0)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Some(versions) = self.versions() {
            // Release: what was read is read.
            versions.state.fetch_sub(1, Ordering::Release);
        }
    }
}

/// The versions of a node, which may be taken away meanwhile.
///
/// # Safety
/// The node was made with versions in an arena that lives for `'a`.
#[inline]
pub(crate) unsafe fn versions_of<'a>(node: NonNull<Node>) -> &'a Versions {
    // SAFETY: they lie right behind the header.
    let versions = unsafe { node.add(1) }.cast::<Versions>();
    // SAFETY: written in `Node::allocate`, and changed only through atomics.
    unsafe { versions.as_ref() }
}

impl<'a> NodeRef<'a> {
    /// # Safety
    /// The node was made with versions.
    #[inline]
    pub(crate) unsafe fn versions(self) -> &'a Versions {
        // SAFETY: passed on; the arena lives for `'a`.
        unsafe { versions_of(self.as_ptr()) }
    }
}
