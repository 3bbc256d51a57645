//! Maintenance, in a thread of its own.

use std::ops::Bound;
use std::path::PathBuf;

use terrane::{Keyspace, Maintenance};

use crate::call::{Call, CommandError, Outcome, SYNTAX};
use crate::protocol::Reply;
use crate::session::{Next, ReplyMode};

/// Runs `work` in a thread of its own. The reply is `OK`, or its error.
fn run_aside(
    call: &mut Call<'_, '_>,
    work: impl FnOnce(&Maintenance) -> terrane::Result<()> + Send + 'static,
) -> Outcome {
    let (protocol, is_wanted) = (call.session.protocol, call.session.replies == ReplyMode::On);
    let waker = call.shared.waker(call.session.client.worker);
    let waker = waker.ok_or("ERR the server is not running")?;
    let db = call.shared.databases.db();
    let pending = call.shared.helpers.start(db, waker, move |maintenance| {
        let mut reply = Reply::new(Vec::new(), protocol);
        match work(maintenance).map_err(CommandError::from) {
            _ if !is_wanted => {}
            Ok(()) => reply.ok(),
            Err(CommandError(text)) => reply.error(&text),
        }
        reply.into_buffer()
    });
    let busy = "ERR too many maintenance commands are running; try again when one has ended";
    call.session.pending = Some(pending.ok_or(busy)?);
    call.session.next = Next::Wait;
    Ok(())
}

pub(super) fn compact(call: &mut Call<'_, '_>) -> Outcome {
    let databases = call.store.databases();
    let keyspaces: Vec<Keyspace> = databases.keyspaces(call.db()).cloned().collect();
    let strings = databases.existing(call.db()).cloned();
    let bound = |index| call.arguments.get(index).map(<[u8]>::to_vec);
    match (bound(1), bound(2)) {
        _ if call.arguments.len() > 3 => Err(SYNTAX.into()),
        (None, _) => run_aside(call, move |maintenance| {
            keyspaces.iter().try_for_each(|keyspace| maintenance.compact_range(keyspace, ..))
        }),
        (Some(start), end) => run_aside(call, move |maintenance| {
            let end = end.map_or(Bound::Unbounded, Bound::Excluded);
            let Some(keyspace) = strings else { return Ok(()) };
            maintenance.compact_range(&keyspace, (Bound::Included(start), end))
        }),
    }
}

pub(super) fn checkpoint(call: &mut Call<'_, '_>) -> Outcome {
    let dir = std::str::from_utf8(call.argument(1)).map(PathBuf::from);
    let dir = dir.map_err(|_| "ERR the directory is not UTF-8")?;
    if !dir.is_absolute() {
        return Err("ERR the directory of a checkpoint must be an absolute path".into());
    }
    run_aside(call, move |maintenance| maintenance.checkpoint(&dir))
}
