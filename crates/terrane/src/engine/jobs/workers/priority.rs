//! Compactions give way to writers, readers and flushes where processors are scarce.

/// By how much a thread that compacts is nicer than others: where both want a processor it has a
/// quarter of what they have, and all of it where they do not.
#[cfg(target_os = "linux")]
const NICE: i32 = 6;

/// Has the calling thread give way to others.
pub(crate) fn give_way() {
    #[cfg(target_os = "linux")]
    {
        // On Linux each thread has a priority of its own. Where it cannot be had nothing is lost.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
    }
}
