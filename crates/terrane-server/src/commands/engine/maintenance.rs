//! Maintenance, in its own thread.

use std::ops::Bound;
use std::path::PathBuf;

use terrane::Keyspace;

use crate::call::{Call, Outcome, SYNTAX};
use crate::commands::aside::{answer_aside, maintain};

pub(super) fn compact(call: &mut Call<'_, '_>) -> Outcome {
    let databases = call.store.databases();
    let keyspaces: Vec<Keyspace> = databases.keyspaces(call.db()).cloned().collect();
    let strings = databases.existing(call.db()).cloned();
    let bound = |index| call.arguments.get(index).map(<[u8]>::to_vec);
    match (bound(1), bound(2)) {
        _ if call.arguments.len() > 3 => Err(SYNTAX.into()),
        (None, _) => maintain(call, move |maintenance| {
            keyspaces.iter().try_for_each(|keyspace| maintenance.compact_range(keyspace, ..))
        }),
        (Some(start), end) => maintain(call, move |maintenance| {
            let end = end.map_or(Bound::Unbounded, Bound::Excluded);
            let Some(keyspace) = strings else { return Ok(()) };
            maintenance.compact_range(&keyspace, (Bound::Included(start), end))
        }),
    }
}

pub(super) fn advise(call: &mut Call<'_, '_>) -> Outcome {
    let advisor = call.shared.config.advisor.clone().ok_or("ERR this server has no advisor")?;
    let keyspace = call.store.databases().existing(call.db()).cloned();
    let keyspace = keyspace.ok_or("ERR nothing was written to this database")?;
    answer_aside(call, move |_, reply| {
        let text = advisor.advise(&keyspace).map_err(|text| format!("ERR {text}"))?;
        reply.verbatim(&text);
        Ok(())
    })
}

pub(super) fn checkpoint(call: &mut Call<'_, '_>) -> Outcome {
    let dir = std::str::from_utf8(call.argument(1)).map(PathBuf::from);
    let dir = dir.map_err(|_| "ERR the directory is not UTF-8")?;
    if !dir.is_absolute() {
        return Err("ERR the directory of a checkpoint must be an absolute path".into());
    }
    maintain(call, move |maintenance| maintenance.checkpoint(&dir))
}
