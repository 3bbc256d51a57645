//! Keeps a lost page of a mapped log from ending the process.
//!
//! A store to a mapped page raises SIGBUS if the page is gone: because another program has shortened the
//! file, or because the page has to be read and the device fails. The [`WritableMapping`] of a log
//! registers its addresses here. The first registration installs a handler for SIGBUS in the process. If
//! the address of a fault is in a registered range, the handler notes that the range has lost a page,
//! maps an anonymous page of zeros in its place, and returns, so that the store succeeds. The writer then
//! finds the note, and refuses its record.
//!
//! Every other SIGBUS goes to the handler that was installed before, or has the effect that it would
//! have had. A handler that is installed later must do the same for this one.
//!
//! 1. A slot is never freed, so the handler may read any slot at any time. A dropped range returns its
//!    slot for reuse.
//! 2. The address range of a slot changes only while its version is odd, so the handler never combines
//!    the start of one range with the length of another.
//! 3. The note is made before the page is replaced. A store to the anonymous page therefore precedes no
//!    check that misses the note.
//! 4. The handler only reads and writes atomics and makes system calls. It takes no lock and allocates
//!    nothing, because it may interrupt any code.
//!
//! [`WritableMapping`]: super::mapping::WritableMapping
#![allow(unsafe_code, reason = "signal handlers have no safe interface")]

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// A registered range of addresses. Alone in its cache lines, because every write to a log reads `lost`.
#[derive(Debug)]
#[repr(align(128))]
struct Slot {
    /// The offset of the first lost page, plus one; 0 if no page was lost.
    lost: AtomicU64,
    is_taken: AtomicBool,
    version: AtomicUsize,
    start: AtomicUsize,
    len: AtomicUsize,
    /// The slot that was created before; constant.
    next: *const Slot,
}

// SAFETY: `next` is constant and points to a slot that is never freed (1); the rest is atomic.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

/// The newest slot, from which all others are reached.
static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(std::ptr::null_mut());

/// The handling of SIGBUS before this one was installed.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(std::ptr::null_mut());

/// The length of a page.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A range of addresses whose lost pages are noted, until it is dropped.
#[derive(Debug)]
pub(super) struct GuardedRange(&'static Slot);

impl GuardedRange {
    /// Registers `len` bytes from `start` on, and installs the handler if it is not installed yet.
    ///
    /// # Errors
    /// The operating system refuses the handler.
    pub(super) fn register(start: *const u8, len: usize) -> io::Result<Self> {
        static INSTALLED: OnceLock<Result<(), Option<i32>>> = OnceLock::new();
        let installed = INSTALLED.get_or_init(|| install().map_err(|error| error.raw_os_error()));
        installed.map_err(|code| {
            code.map_or(io::ErrorKind::Other.into(), io::Error::from_raw_os_error)
        })?;
        let slot = free_slot().unwrap_or_else(add_slot);
        slot.lost.store(0, Ordering::Relaxed);
        slot.set_range(start as usize, len);
        Ok(Self(slot))
    }

    /// Returns the offset of the first lost page, if a page was lost.
    #[inline]
    pub(super) fn lost(&self) -> Option<u64> {
        // Relaxed: see `WritableMapping::check`.
        self.0.lost.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Notes that the page at `offset` was lost.
    pub(super) fn note_lost(&self, offset: u64) {
        self.0.note_lost(offset);
    }
}

impl Drop for GuardedRange {
    fn drop(&mut self) {
        self.0.set_range(0, 0);
        // Release pairs with the acquire in `free_slot`: the next owner sets its range after this one.
        self.0.is_taken.store(false, Ordering::Release);
    }
}

impl Slot {
    /// Sets the range; only the owner of the slot does so.
    fn set_range(&self, start: usize, len: usize) {
        let version = self.version.load(Ordering::Relaxed);
        // SeqCst throughout, because this is rare: the two stores are between the two versions for
        // every observer (2).
        self.version.store(version.wrapping_add(1), Ordering::SeqCst);
        self.start.store(start, Ordering::SeqCst);
        self.len.store(len, Ordering::SeqCst);
        self.version.store(version.wrapping_add(2), Ordering::SeqCst);
    }

    /// Returns the start of the range if it contains `address`. A range that is being changed contains
    /// none: nobody stores to a map before it is registered, or after its range is dropped.
    fn start_if_contains(&self, address: usize) -> Option<usize> {
        let version = self.version.load(Ordering::SeqCst);
        let start = self.start.load(Ordering::SeqCst);
        let len = self.len.load(Ordering::SeqCst);
        let is_stable = version.is_multiple_of(2) && self.version.load(Ordering::SeqCst) == version;
        let contains = address.checked_sub(start).is_some_and(|offset| offset < len);
        (is_stable && contains).then_some(start)
    }

    fn note_lost(&self, offset: u64) {
        // SeqCst: the note is visible before the page is replaced (3). The first note is kept.
        let _ = self.lost.compare_exchange(
            0,
            offset.saturating_add(1),
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
    }
}

/// Returns the slots, newest first.
fn slots() -> impl Iterator<Item = &'static Slot> {
    // Acquire pairs with the release in `add_slot`. Slots are reached from the newest one, whose
    // contents include those of the older ones.
    let mut next: *const Slot = SLOTS.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: a pointer to a slot is null or valid forever (1).
        let slot = unsafe { next.as_ref() }?;
        next = slot.next;
        Some(slot)
    })
}

/// Takes a slot that a dropped range has returned.
fn free_slot() -> Option<&'static Slot> {
    slots().find(|slot| !slot.is_taken.swap(true, Ordering::Acquire))
}

/// Adds a slot, which is taken.
fn add_slot() -> &'static Slot {
    let slot = Box::leak(Box::new(Slot {
        lost: AtomicU64::new(0),
        is_taken: AtomicBool::new(true),
        version: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        next: std::ptr::null(),
    }));
    let mut newest = SLOTS.load(Ordering::Acquire);
    loop {
        slot.next = newest;
        let added: *mut Slot = &raw mut *slot;
        match SLOTS.compare_exchange(newest, added, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return slot,
            Err(other) => newest = other,
        }
    }
}

/// Installs the handler for SIGBUS, once in a process.
fn install() -> io::Result<()> {
    // The interpreter has no signals, and no file that another program shortens.
    if cfg!(miri) {
        return Ok(());
    }
    // SAFETY: this call has no preconditions.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page_bytes = usize::try_from(page_bytes).ok().filter(|bytes| bytes.is_power_of_two());
    PAGE_BYTES.store(page_bytes.ok_or(io::ErrorKind::Unsupported)?, Ordering::Relaxed);
    let previous = current_action()?;
    let mut action = previous;
    // The alternate stack, if the thread has one, because the fault may be due to a full stack. The
    // mask of the previous handler is kept for the calls that it gets.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | (previous.sa_flags & libc::SA_RESTART);
    action.sa_sigaction = handle_bus_error as *const () as usize;
    // Stored before the handler can run. Kept forever, because it may run at any time.
    PREVIOUS.store(Box::leak(Box::new(previous)), Ordering::Release);
    // SAFETY: `action` is a valid action whose handler has the signature that SA_SIGINFO requires.
    match unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the current handling of SIGBUS.
fn current_action() -> io::Result<libc::sigaction> {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the pointer is valid for writes of an action; no action is set.
    match unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), action.as_mut_ptr()) } {
        // SAFETY: the call has written the action.
        0 => Ok(unsafe { action.assume_init() }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The handler. `info` is valid because the handler is installed with SA_SIGINFO.
extern "C" fn handle_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes a valid pointer, and nothing writes to its target meanwhile.
    let details = unsafe { &*info };
    let code = details.si_code;
    // A positive code is that of a fault; other processes send signals with other codes.
    if code > 0 {
        // SAFETY: the information about a fault includes its address.
        let address = unsafe { details.si_addr() };
        if replace_page(address as usize) {
            return;
        }
    }
    forward(signal, code, info, context);
}

/// Replaces the page of a fault if it is in a registered range. Returns false for any other page.
fn replace_page(address: usize) -> bool {
    let found = slots().find_map(|slot| Some((slot, slot.start_if_contains(address)?)));
    let Some((slot, start)) = found else { return false };
    let page_bytes = PAGE_BYTES.load(Ordering::Relaxed);
    let page = address & !(page_bytes - 1);
    slot.note_lost((page - start) as u64);
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: the page is part of a mapping that its owner keeps alive during the access that faulted.
    // All accesses to that mapping are atomic, and their thread finds the note afterwards.
    unsafe { mmap_anonymous(page as *mut c_void, page_bytes, protection, flags) }.is_ok()
}

/// Does with a signal what would have been done without this handler.
fn forward(signal: c_int, code: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the pointer is null or valid forever.
    let previous = unsafe { PREVIOUS.load(Ordering::Acquire).as_ref() };
    let handler = previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction);
    let flags = previous.map_or(0, |previous| previous.sa_flags);
    let is_fault = code > 0;
    match handler {
        libc::SIG_IGN if !is_fault => {}
        // The system does not ignore faults: the process ends.
        libc::SIG_DFL | libc::SIG_IGN => end_by_default(signal, is_fault),
        handler => {
            if flags & libc::SA_RESETHAND != 0 {
                set_default(signal);
            }
            if flags & libc::SA_SIGINFO != 0 {
                // SAFETY: the program has installed this handler with SA_SIGINFO.
                let handler = unsafe {
                    std::mem::transmute::<
                        usize,
                        extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void),
                    >(handler)
                };
                handler(signal, info, context);
            } else {
                // SAFETY: the program has installed this handler without SA_SIGINFO.
                let handler =
                    unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(handler) };
                handler(signal);
            }
        }
    }
}

/// Ends the process by the signal, as if it had no handler.
fn end_by_default(signal: c_int, is_fault: bool) {
    set_default(signal);
    if !is_fault {
        // A fault occurs again when this handler returns. Any other signal must be sent again; it is
        // blocked until then.
        // SAFETY: this call has no preconditions.
        unsafe { libc::raise(signal) };
    }
}

fn set_default(signal: c_int) {
    // SAFETY: an action of zeros is valid: it is the default, without flags and mask.
    let action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `action` is valid.
    unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses that no process has.
    fn address(index: usize) -> usize {
        (1 << 60) + index * 4096
    }

    fn register(index: usize, len: usize) -> GuardedRange {
        GuardedRange::register(std::ptr::without_provenance(address(index)), len).unwrap()
    }

    fn find(address: usize) -> Option<(&'static Slot, usize)> {
        slots().find_map(|slot| Some((slot, slot.start_if_contains(address)?)))
    }

    #[test]
    fn an_address_belongs_to_its_range_until_the_range_is_dropped() {
        let (first, second) = (register(0, 4096), register(2, 100));
        for inside in [address(0), address(1) - 1] {
            let (slot, start) = find(inside).unwrap();
            assert!(std::ptr::eq(slot, first.0) && start == address(0));
        }
        assert!(find(address(0) - 1).is_none() && find(address(1)).is_none());
        assert!(find(address(2) + 99).is_some() && find(address(2) + 100).is_none());
        first.note_lost(7);
        second.note_lost(0);
        first.note_lost(8);
        assert_eq!((first.lost(), second.lost()), (Some(7), Some(0)));
        drop(first);
        assert!(find(address(0)).is_none());
        assert_eq!(register(3, 1).lost(), None, "a reused slot has no note of its last range");
    }

    #[test]
    fn no_search_combines_two_ranges_of_a_slot() {
        let rounds = if cfg!(miri) { 15 } else { 2000 };
        std::thread::scope(|scope| {
            let owners: Vec<_> = (0..3)
                .map(|thread| {
                    scope.spawn(move || {
                        // A long range and a short one, which follows it.
                        for _ in 0..rounds {
                            drop(register(10 + 10 * thread, 3 * 4096));
                            drop(register(13 + 10 * thread, 1));
                        }
                    })
                })
                .collect();
            while !owners.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                for thread in 0..3 {
                    let first = 10 + 10 * thread;
                    let found = find(address(first + 2)).map(|found| found.1);
                    assert!(found.is_none_or(|start| start == address(first)), "{found:?}");
                    // Only the start of the short range with the length of the long one has this.
                    assert!(find(address(first + 4)).is_none());
                }
                std::thread::yield_now();
            }
        });
    }
}
