//! The priority of compaction threads.

/// The niceness added to a compaction thread. Competing for a processor, it gets a quarter of the time
/// of another thread; on an idle processor, all of it.
#[cfg(target_os = "linux")]
const NICE: i32 = 6;

/// Lowers the priority of the calling thread below that of writers, readers and flushes.
pub(super) fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        // On Linux each thread has its own priority. A failure leaves the default, which is safe.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
    }
}
