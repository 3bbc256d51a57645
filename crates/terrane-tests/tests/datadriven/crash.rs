//! Crashes, faults and full disks.

use std::io::ErrorKind;
use std::path::Path;

use terrane::storage::{Crash, Fault, Operation, Survival};
use terrane_testkit::datadriven::Case;

use crate::draw::mask;
use crate::session::Session;

fn number(case: &Case, name: &str) -> Option<u64> {
    case.argument(name).map(|text| text.parse().unwrap())
}

/// Ends the process or the machine now, or at a crash point that `points` listed.
pub(crate) fn crash(session: &mut Session, case: &Case) {
    let seed = number(case, "seed").unwrap_or(1);
    let power = |percent| Crash::Power(Survival { percent, seed });
    let crash = number(case, "keep").map_or(Crash::Process, power);
    let image = match number(case, "point") {
        Some(at) => session.points[at as usize - 1].image(crash),
        None => session.memory.crash_point().image(crash),
    };
    session.replace_files(image);
}

/// Lists the crash points since `record`, and ends the recording.
pub(crate) fn points(session: &mut Session) -> String {
    session.points = session.memory.take_crash_points();
    let line = |(index, point): (usize, &terrane::storage::CrashPoint)| {
        format!("{}: before {}\n", index + 1, mask(point.operation()))
    };
    session.points.iter().enumerate().map(line).collect()
}

/// Sets a fault, or removes it.
pub(crate) fn fault(session: &Session, case: &Case) -> String {
    let fired = session.faults.fired();
    if case.argument("off").is_some() {
        session.faults.set(None);
        return format!("fired {fired}");
    }
    let operation = case.argument("operation").map(|name| match name {
        "create" => Operation::Create,
        "open" => Operation::Open,
        "read" => Operation::Read,
        "append" => Operation::Append,
        "write" => Operation::Write,
        "sync" => Operation::Sync,
        "sync-dir" => Operation::SyncDir,
        "name" => Operation::Name,
        "list" => Operation::List,
        other => panic!("unknown operation {other}"),
    });
    let is_full = case.argument("full").is_some();
    session.faults.set(Some(Fault {
        operation,
        path_contains: case.argument("path").unwrap_or_default().into(),
        after: number(case, "after").unwrap_or(0),
        is_permanent: case.argument("permanent").is_some(),
        error: if is_full { ErrorKind::StorageFull } else { ErrorKind::Other },
    }));
    String::new()
}

/// Sets how many bytes may be written from now on.
pub(crate) fn disk(session: &Session, case: &Case) {
    let free = number(case, "free");
    session.memory.set_capacity(free.map(|bytes| session.memory.used_bytes() + bytes));
}

/// Flips a bit of a table or another file whose name contains the text.
pub(crate) fn flip(session: &Session, case: &Case) {
    let wanted = case.argument("path").unwrap();
    let name = session.names().into_iter().find(|name| name.contains(wanted)).unwrap();
    let path = Path::new(&session.dir).join(name);
    let mut bytes = session.memory.read(&path).unwrap();
    bytes[number(case, "at").unwrap() as usize] ^= 1;
    session.memory.overwrite(&path, &bytes).unwrap();
}
