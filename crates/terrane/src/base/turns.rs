//! Background threads that take short turns on a processor.
//!
//! Linux usually takes a processor from a running thread only at a tick of the clock, every 1 to 10 ms. A write or a
//! lookup that shares its processor with a merge would wait that long in the middle of a microsecond of work. The
//! background threads therefore ask for a time slice of 0.4 ms, and give the processor up themselves before it ends.
//! (A thread with a short slice also gets a processor sooner when it wakes.)
//!
//! A thread that gives up its processor also gives up the rest of its slice. With the default slice, 1.4 ms on two
//! processors and more on others, it would lose most of its share to busy threads, and merges would fall behind. So
//! threads give way only where the system grants the shorter slice (Linux 6.12 and newer); elsewhere nothing changes.
#![allow(unsafe_code, reason = "the standard library has no time slices")]

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::cell::Cell;
    use std::time::Duration;

    use rustix::thread::sched_yield;

    use crate::base::clock::thread_cpu_time;

    /// The time slice of a background thread.
    const SLICE: Duration = Duration::from_micros(400);

    /// A thread gives way once it has run for this long. It is less than the slice, because a thread whose slice has
    /// ended gives up the next one.
    const TURN: Duration = Duration::from_micros(300);

    thread_local! {
        /// The thread's processor time when its turn began, if it takes short turns.
        static TURN_BEGAN: Cell<Option<Duration>> = const { Cell::new(None) };
    }

    pub(super) fn take_short_turns() {
        TURN_BEGAN.set(request_slice().and_then(|()| thread_cpu_time()));
    }

    pub(super) fn are_short() -> bool {
        TURN_BEGAN.get().is_some()
    }

    pub(super) fn give_way() {
        let Some(began) = TURN_BEGAN.get() else { return };
        if thread_cpu_time().is_some_and(|now| now.saturating_sub(began) >= TURN) {
            sched_yield();
            TURN_BEGAN.set(thread_cpu_time());
        }
    }

    /// Requests the slice for the calling thread. Returns `None` if the system does not honour it, or if the thread
    /// is not scheduled as usual.
    fn request_slice() -> Option<()> {
        let mut attributes = attributes()?;
        if attributes.sched_policy != libc::SCHED_OTHER as u32 {
            return None;
        }
        let slice = SLICE.as_nanos() as u64;
        if (1..slice).contains(&attributes.sched_runtime) {
            return None;
        }
        attributes.sched_runtime = slice;
        // Threads that this one starts get the usual slice, because they do not give way.
        attributes.sched_flags |= libc::SCHED_FLAG_RESET_ON_FORK as u64;
        // SAFETY: the system reads `size` bytes of the structure, which is as long.
        let failed = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
        // Older systems accept the slice, and forget it.
        let granted = self::attributes()?.sched_runtime;
        (failed == 0 && granted == slice).then_some(())
    }

    /// Returns the scheduling attributes of the calling thread.
    fn attributes() -> Option<libc::sched_attr> {
        attributes_of(0)
    }

    /// Returns the scheduling attributes of a thread of this process; 0 is the calling one.
    fn attributes_of(thread: libc::pid_t) -> Option<libc::sched_attr> {
        let mut attributes = std::mem::MaybeUninit::<libc::sched_attr>::zeroed();
        let size = size_of::<libc::sched_attr>() as u32;
        let to = attributes.as_mut_ptr();
        // SAFETY: the system writes at most `size` bytes to the structure, which is as long.
        let failed = unsafe { libc::syscall(libc::SYS_sched_getattr, thread, to, size, 0) };
        // SAFETY: all fields are numbers, for which zeros are valid, too.
        let attributes = unsafe { attributes.assume_init() };
        (failed == 0).then_some(libc::sched_attr { size, ..attributes })
    }

    /// Returns the names and the niceness of the threads of this process that have the short slice.
    #[cfg(test)]
    #[allow(clippy::disallowed_methods, reason = "the system lists threads in files")]
    pub(crate) fn threads_with_short_turns() -> Vec<(String, i32)> {
        let mut found = Vec::new();
        for thread in std::fs::read_dir("/proc/self/task").unwrap() {
            let thread = thread.unwrap();
            let number = thread.file_name().to_str().unwrap().parse().unwrap();
            let name = std::fs::read_to_string(thread.path().join("comm"));
            // Threads of other tests may end meanwhile.
            if let (Some(attributes), Ok(name)) = (attributes_of(number), name)
                && attributes.sched_runtime == SLICE.as_nanos() as u64
            {
                found.push((name.trim().into(), attributes.sched_nice));
            }
        }
        found
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        #[allow(clippy::disallowed_methods, reason = "the turns of the thread end with it")]
        fn a_thread_whose_slice_is_honoured_gives_way_after_its_turn() {
            let run = || {
                // Without a short slice, a thread does not give way.
                give_way();
                assert_eq!(TURN_BEGAN.get(), None);
                take_short_turns();
                let is_honoured =
                    attributes().is_some_and(|it| it.sched_runtime == SLICE.as_nanos() as u64);
                assert_eq!(TURN_BEGAN.get().is_some(), is_honoured);
                let Some(began) = TURN_BEGAN.get() else { return };
                give_way();
                let ran = || thread_cpu_time().unwrap_or_default().saturating_sub(began);
                assert!(TURN_BEGAN.get() == Some(began) || ran() >= TURN);
                while ran() < 2 * TURN {}
                give_way();
                let next = TURN_BEGAN.get().map(|next| next.saturating_sub(began));
                assert!(next.is_some_and(|next| next >= 2 * TURN), "{next:?}");
            };
            std::thread::spawn(run).join().unwrap();
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    pub(super) fn take_short_turns() {}

    #[cfg(target_os = "linux")]
    pub(super) fn are_short() -> bool {
        false
    }

    pub(super) fn give_way() {}
}

#[cfg(all(test, target_os = "linux", not(miri)))]
pub(crate) use system::threads_with_short_turns;

#[cfg(test)]
thread_local! {
    /// How often the thread was ready to give way.
    pub(crate) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Lets the calling thread, a background thread, take short turns, if the system supports them.
pub(crate) fn take_short_turns() {
    system::take_short_turns();
}

/// Returns true if the calling thread takes short turns.
#[cfg(target_os = "linux")]
pub(crate) fn are_short() -> bool {
    system::are_short()
}

/// Gives the processor to another thread if the calling thread has short turns and this one has ended. A background
/// thread calls this after each step of a long work, without locks that others wait for.
pub(crate) fn give_way() {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
    system::give_way();
}
