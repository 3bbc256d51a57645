//! A naive model of the queue: Lindley's recursion for several servers.

/// Returns the write and processing latencies of `arrivals`, which `servers` serve in order until
/// `end`, and the number of arrivals not started by then.
pub(super) fn latencies(
    arrivals: impl Iterator<Item = u64>,
    servers: usize,
    end: u64,
    service: impl Fn(u64) -> u64,
) -> (Vec<(u64, u64)>, usize) {
    let mut free = vec![0u64; servers];
    let mut done = Vec::new();
    let mut unfinished = 0;
    for arrival in arrivals.take_while(|arrival| *arrival < end) {
        let server = free.iter_mut().min().unwrap();
        let start = arrival.max(*server);
        if start >= end {
            unfinished += 1;
            continue;
        }
        *server = start + service(start);
        done.push((*server - arrival, *server - start));
    }
    (done, unfinished)
}
