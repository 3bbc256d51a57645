//! Runs a workload on a store with client threads in a closed loop.
//!
//! Every client has its own keys, values, random numbers and histogram, so clients share only the
//! store. They start together, while the calling thread reports progress. One reading of the clock
//! ends an operation and begins the next, so the time of an operation includes reading the clock,
//! updating the histogram, generating the key and checking the value: 25 ns, and up to 30 ns more
//! for a skewed choice.
//!
//! The first error of a client stops all clients, and the run returns it.

mod client;
mod mixed;
mod reads;
mod recorder;
mod scans;
mod shared;
mod writes;
mod ycsb;

#[cfg(test)]
mod tests;

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Scope, ScopedJoinHandle, scope};
use std::time::{Duration, Instant};

use crate::answers::Tally;
use crate::error::{RunError, StoreError};
use crate::latency::Latency;
use crate::mixed::part;
use crate::operation_mix::MixPart;
use crate::options::RunOptions;
use crate::progress::Progress;
use crate::report::{KindReport, Report, WriterReport};
use crate::store::{Direction, Store};
use crate::workload::Workload;
use client::{Client, ClientResult};
use recorder::slowest_second_share;
use shared::Shared;

const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Runs `workload` on `store` and returns a report.
///
/// The data that the workload needs ([`Workload::loaded_by`]) must have been loaded with the same
/// options. Background work caused by its writes is left to [settle](Workload::Settle). `progress`
/// receives reports ten times a second.
///
/// # Errors
/// Invalid options, or the first error of the store.
///
/// # Panics
/// When the store panics.
pub fn run(
    store: &dyn Store,
    workload: Workload,
    options: &RunOptions,
    progress: &dyn Progress,
) -> Result<Report, RunError> {
    workload.check(options)?;
    let keys = workload.key_space(options)?;
    let before = store.counters();
    let shared = Shared::new(workload, options);
    let (clients, writer) = scope(|scope| {
        let new_client = |thread| Client::new(store, workload, options, keys, thread, &shared);
        let (finished, all_finished) = channel::<()>();
        let clients: Vec<_> = (0..options.threads)
            .map(|thread| {
                let finished = finished.clone();
                spawn(scope, new_client(thread), &shared, move |client| {
                    let result = work(client, workload);
                    drop(finished);
                    result
                })
            })
            .collect();
        drop(finished);
        let writer = (workload == Workload::ReadWhileWriting)
            .then(|| spawn(scope, new_client(options.threads), &shared, writes::until_stopped));
        shared.start.wait();
        let total = workload.operations(options);
        let begin = Instant::now();
        while all_finished.recv_timeout(PROGRESS_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            progress.update(shared.done_by(options.threads), total, begin.elapsed());
        }
        progress.update(shared.done_by(options.threads), total, begin.elapsed());
        shared.stop();
        (clients.into_iter().map(joined).collect::<Vec<_>>(), writer.map(joined))
    });
    let clients = clients.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut report = report(workload, options, &clients, writer.transpose()?);
    report.counters = store.counters().since(&before);
    Ok(report)
}

type Joining<'scope> = ScopedJoinHandle<'scope, Result<ClientResult, StoreError>>;

/// Executes this client's share of the workload.
fn work(client: &mut Client<'_>, workload: Workload) -> Result<(), StoreError> {
    let total = workload.operations(client.options);
    let part = part(total, client.thread, client.options.threads);
    let count = part.end - part.start;
    match workload {
        Workload::FillSeq | Workload::FillRandom | Workload::YcsbLoad => writes::fill(client, part),
        Workload::FillSync => writes::fill_synced(client, part),
        Workload::FillBatch { entries } => writes::fill_batches(client, part, entries),
        Workload::Overwrite => writes::overwrite(client, count),
        Workload::DeleteRandom => writes::delete_random(client, count),
        Workload::ReadRandom | Workload::ReadWhileWriting => reads::read_random(client, count),
        Workload::ReadMissing => reads::read_missing(client, count),
        Workload::MultiReadRandom { keys } => reads::multi_read(client, count, keys),
        Workload::ReadSeq => scans::read_all(client, Direction::Forward, count),
        Workload::ReadReverse => scans::read_all(client, Direction::Backward, count),
        Workload::SeekRandom { entries } => scans::seek_random(client, count, entries),
        Workload::Ycsb(mix) => ycsb::run_mix(client, mix, count),
        Workload::Mix => mixed::run(client, count),
        // Settling counts as one operation, so only one client settles the store.
        Workload::Settle => client.repeat(count, |client| client.store.settle()),
    }
}

/// Spawns a thread that waits for the other clients and then executes `work`.
fn spawn<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    mut client: Client<'scope>,
    shared: &'scope Shared,
    work: impl FnOnce(&mut Client<'scope>) -> Result<(), StoreError> + Send + 'scope,
) -> Joining<'scope> {
    scope.spawn(move || {
        shared.start.wait();
        client.recorder.begin();
        let result = work(&mut client);
        if result.is_err() {
            shared.stop();
        }
        result.map(|()| client.finish())
    })
}

fn joined(handle: Joining<'_>) -> Result<ClientResult, StoreError> {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn report(
    workload: Workload,
    options: &RunOptions,
    clients: &[ClientResult],
    writer: Option<ClientResult>,
) -> Report {
    let mut latency = Latency::new();
    let mut tally = Tally::default();
    for result in clients {
        latency.add(&result.recording.latency);
        tally.add(&result.tally);
    }
    let operations = clients.iter().map(|client| client.recording.operations).sum();
    let begin = clients.iter().map(|client| client.recording.begin).min();
    let end = clients.iter().map(|client| client.recording.end).max();
    let elapsed = end.zip(begin).map(|(end, begin)| end.duration_since(begin));
    let per_second = clients.iter().map(|client| client.recording.per_second.as_slice());
    let seconds = elapsed.unwrap_or_default().as_secs_f64();
    if let Some(writer) = &writer {
        tally.add(&writer.tally);
    }
    Report {
        workload,
        distribution: workload.distribution(options),
        threads: options.threads,
        operations,
        seconds,
        latency,
        operations_per_sample: workload.operations_per_sample(),
        found: tally.found,
        missing: tally.missing,
        not_found: tally.not_found,
        phantoms: tally.phantoms,
        wrong_values: tally.wrong_values,
        out_of_order: tally.out_of_order,
        user_bytes_written: tally.bytes_written,
        user_bytes_read: tally.bytes_read,
        slowest_second_share: slowest_second_share(per_second, seconds),
        kinds: kinds(workload, options, clients),
        writer: writer.map(|writer| WriterReport {
            operations: writer.recording.operations,
            seconds: writer.recording.end.duration_since(writer.recording.begin).as_secs_f64(),
            latency: writer.recording.latency,
        }),
        counters: crate::store::StoreCounters::default(),
    }
}

/// Merges the results of each kind of operation over all clients.
fn kinds(workload: Workload, options: &RunOptions, clients: &[ClientResult]) -> Vec<KindReport> {
    if workload != Workload::Mix {
        return Vec::new();
    }
    let report = |(number, part): (usize, &MixPart)| {
        let mut latency = Latency::new();
        clients.iter().filter_map(|client| client.kinds.get(number)).for_each(|of_client| {
            latency.add(of_client);
        });
        KindReport { kind: part.kind, operations: latency.samples(), latency }
    };
    options.mix.parts().iter().enumerate().map(report).collect()
}
