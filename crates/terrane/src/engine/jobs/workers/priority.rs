//! The priority of compaction threads.

/// The niceness added to a compaction thread. If it competes with another thread for a processor, it
/// gets a quarter of that thread's time; on an idle processor it runs at full speed.
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
