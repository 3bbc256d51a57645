//! Commands that Redis lacks: the tree, the design, ordered ranges and maintenance.

mod maintenance;
mod range;
mod tree;

use crate::call::catalogue::{ADMIN, Family, NO_KEYS, NO_MULTI, ONE_KEY, READ, STATE, command};
use crate::call::{Call, Outcome};

pub(super) const FAMILY: Family = Family {
    group: "terrane",
    commands: &[
        command("terrane.help", 1, 0, NO_KEYS, "Lists the commands of this group.", help),
        command(
            "terrane.tree",
            1,
            STATE | READ,
            NO_KEYS,
            "Draws the levels of the database.",
            tree::tree,
        ),
        command(
            "terrane.stats",
            -1,
            STATE | READ,
            NO_KEYS,
            "Returns statistics of the engine.",
            tree::stats,
        ),
        command(
            "terrane.events",
            -1,
            STATE | READ,
            NO_KEYS,
            "Returns the last flushes and compactions.",
            tree::events,
        ),
        command(
            "terrane.design",
            -1,
            STATE | READ | NO_MULTI,
            NO_KEYS,
            "Returns or changes the design.",
            tree::design,
        ),
        command(
            "terrane.why",
            -2,
            READ,
            ONE_KEY,
            "Explains the lookup of a key or a field.",
            tree::why,
        ),
        command(
            "terrane.range",
            -3,
            READ,
            NO_KEYS,
            "Returns strings in the order of their keys.",
            range::range,
        ),
        command(
            "terrane.compact",
            -1,
            ADMIN | STATE | READ | NO_MULTI,
            NO_KEYS,
            "Compacts the database, and waits.",
            maintenance::compact,
        ),
        command(
            "terrane.advise",
            1,
            ADMIN | STATE | READ | NO_MULTI,
            NO_KEYS,
            "Advises on the design of the database.",
            maintenance::advise,
        ),
        command(
            "terrane.checkpoint",
            2,
            ADMIN | NO_MULTI,
            NO_KEYS,
            "Copies the database to a new directory.",
            maintenance::checkpoint,
        ),
    ],
};

fn help(call: &mut Call<'_, '_>) -> Outcome {
    call.reply.texts(&[
        "TERRANE.TREE",
        "    Draws the levels of the selected database, and of its hashes.",
        "TERRANE.STATS [OPENMETRICS]",
        "    Returns the statistics of the engine, as text or in the format of Prometheus.",
        "TERRANE.EVENTS [count]",
        "    Returns the last events: number, time in microseconds, and a sentence.",
        "TERRANE.DESIGN [SET design]",
        "    Returns the design of the selected database, or changes it while clients continue.",
        "TERRANE.ADVISE",
        "    Ranks designs for the operations on the server, and says whether a change pays.",
        "TERRANE.WHY key [field]",
        "    Shows which memtables and tables a lookup consults, and which filters exclude the key.",
        "TERRANE.RANGE start stop [REV] [LIMIT count]",
        "    Returns strings in order: [key includes it, (key excludes it, - and + are the ends.",
        "TERRANE.COMPACT [start [stop]]",
        "    Compacts the selected database and its hashes, or the strings of a range of keys.",
        "TERRANE.CHECKPOINT directory",
        "    Copies the database to a new directory of the server, as of one moment.",
    ]);
    Ok(())
}
