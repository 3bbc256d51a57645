//! The commands of the shell, and their help.

use std::time::Duration;

use terrane_lab::input::kv_literal::KeyBounds;
use terrane_policy::suggest;

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Put { key: Vec<u8>, value: Vec<u8> },
    Get { key: Vec<u8> },
    Delete { key: Vec<u8> },
    DeleteRange(KeyBounds),
    Scan { range: KeyBounds, limit: u64, order: Order },
    Count { range: KeyBounds },
    Keys { range: KeyBounds, limit: u64 },
    Batch,
    End,
    Abort,
    Stats { is_open_metrics: bool },
    Tree,
    Events { limit: usize },
    Advise(Advise),
    Design { spec: Option<String> },
    Options,
    Checkpoint { dir: String },
    Ttl { key: Vec<u8>, ttl: Option<Duration> },
    Flush,
    Compact(KeyBounds),
    Keyspaces,
    Rename { keyspace: String, new_name: String },
    Drop { keyspace: String },
    Use { keyspace: String },
    Help { about: Option<String> },
    Exit,
}

impl Command {
    /// Returns true if the command writes, so that it creates a database that does not exist.
    pub(super) fn writes(&self) -> bool {
        matches!(
            self,
            Self::Put { .. }
                | Self::Delete { .. }
                | Self::DeleteRange(_)
                | Self::Batch
                | Self::Use { .. }
                | Self::Design { spec: Some(_) }
        )
    }

    /// Returns true if the command needs no database.
    pub(super) fn needs_nothing(&self) -> bool {
        matches!(self, Self::Help { .. } | Self::Exit)
    }
}

/// The arguments of `advise`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Advise {
    /// True if the shell makes a worthwhile change.
    pub(super) applies: bool,
    /// The minimum gain that a change must have, in percent.
    pub(super) gain: u64,
    /// The time in which the change must pay for itself.
    pub(super) within: Duration,
}

/// The direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Ascending,
    Descending,
}

/// The help of a command.
#[derive(Debug)]
pub(super) struct About {
    /// The name.
    pub(super) name: &'static str,
    /// The arguments.
    pub(super) arguments: &'static str,
    /// What the command does and returns, in one line.
    pub(super) what: &'static str,
    /// An example.
    pub(super) example: &'static str,
}

const fn about(
    name: &'static str,
    arguments: &'static str,
    what: &'static str,
    example: &'static str,
) -> About {
    About { name, arguments, what, example }
}

/// All commands, in the order of `help`.
pub(super) const ALL: &[About] = &[
    about("put", "KEY VALUE", "set the value of a key; answers ok", "put user:42 'Ada Lovelace'"),
    about("get", "KEY", "the value of a key, or (nil)", "get user:42"),
    about(
        "del",
        "KEY | RANGE",
        "remove a key, or all keys of a range, existing or not; answers ok",
        "del user:a..user:m",
    ),
    about(
        "scan",
        "[RANGE] [limit N] [reverse]",
        "the keys of a range with their values, in order",
        "scan a..m limit 10",
    ),
    about(
        "prefix",
        "PREFIX [limit N] [reverse]",
        "the keys with a prefix, with their values",
        "prefix user: limit 10 reverse",
    ),
    about(
        "count",
        "[RANGE | prefix PREFIX]",
        "the number of keys in a range; reads all keys, but no separated values",
        "count prefix user:",
    ),
    about("exists", "KEY", "1 if a key exists, else 0", "exists user:42"),
    about("keys", "[RANGE] [limit N]", "the keys of a range, in order", "keys a..m limit 10"),
    about(
        "batch",
        "",
        "begin a batch: the put and del commands up to `end` apply atomically",
        "batch",
    ),
    about("end", "", "write the batch; answers ok", "end"),
    about("abort", "", "drop the batch; answers ok", "abort"),
    about(
        "stats",
        "[--openmetrics]",
        "counters since the database was opened, and current sizes; --openmetrics for Prometheus",
        "stats --openmetrics",
    ),
    about("tree", "", "a picture of the tree of this keyspace", "tree"),
    about(
        "events",
        "[N]",
        "flushes, compactions with their reasons, and other events since the database was opened; \
         the last N of up to 1000",
        "events 10",
    ),
    about(
        "advise",
        "[apply] [gain PERCENT] [within TIME]",
        "recommend a design for the operations since the last advice; with apply, change to it if it \
         gains PERCENT (10) and pays for itself within TIME (1h)",
        "advise apply gain 15 within 10min",
    ),
    about(
        "design",
        "[SPEC]",
        "the design of this keyspace; with SPEC, change it, and answer ok",
        "design lazy-leveling T=4",
    ),
    about(
        "options",
        "",
        "the options in effect: durability, I/O budget and memory budget",
        "options",
    ),
    about(
        "ttl",
        "KEY [TIME]",
        "the time until a value expires, (never), or (nil) without a value; with TIME, let it expire then, \
         and answer ok",
        "ttl user:42 10min",
    ),
    about(
        "checkpoint",
        "DIR",
        "create a consistent copy of the database in a new directory; answers ok",
        "checkpoint /mnt/copy",
    ),
    about("flush", "", "flush the memtable into tables; answers ok", "flush"),
    about(
        "compact",
        "[RANGE]",
        "merge a range into the last level that holds any of its keys; answers ok",
        "compact a..m",
    ),
    about("keyspaces", "", "the names of the keyspaces", "keyspaces"),
    about(
        "use",
        "KEYSPACE",
        "switch to a keyspace, created if it does not exist; answers ok",
        "use logs",
    ),
    about("rename", "KEYSPACE NAME", "rename a keyspace; answers ok", "rename logs events"),
    about("drop", "KEYSPACE", "remove a keyspace and all its entries; answers ok", "drop logs"),
    about("help", "[COMMAND]", "all commands, or one of them", "help scan"),
    about("exit", "", "leave; so does Ctrl-D", "exit"),
];

/// Names that other stores have for commands.
const ALIASES: [(&str, &str); 9] = [
    ("set", "put"),
    ("insert", "put"),
    ("delete", "del"),
    ("remove", "del"),
    ("tables", "keyspaces"),
    ("databases", "keyspaces"),
    ("info", "stats"),
    ("quit", "exit"),
    ("?", "help"),
];

/// Returns the name of the command for which `name` is an alias, or `name` itself.
pub(super) fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name)
}

/// Finds a command by its name.
pub(super) fn find(name: &str) -> Option<&'static About> {
    let name = canonical(name);
    ALL.iter().find(|about| about.name == name)
}

/// Returns the command whose name is most similar to `name`, if a name is similar enough.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    suggest::nearest(name, ALL.iter().map(|about| about.name))
}

/// Returns the text of `help`, with the arguments above the explanation if they do not fit next to
/// each other.
pub(super) fn help(columns: Option<usize>) -> String {
    let usages: Vec<String> = ALL
        .iter()
        .map(|about| format!("{} {}", about.name, about.arguments).trim_end().to_owned())
        .collect();
    let width = usages.iter().map(String::len).max().unwrap_or(0);
    let longest = ALL.iter().map(|about| about.what.len()).max().unwrap_or(0);
    let is_wide = columns.is_none_or(|columns| width + 2 + longest <= columns);
    let mut text = String::new();
    for (usage, about) in usages.iter().zip(ALL) {
        match is_wide {
            true => text.push_str(&format!("{usage:<width$}  {}\n", about.what)),
            false => text.push_str(&format!("{usage}\n    {}\n", about.what)),
        }
    }
    text.push_str(
        "\nKeys and values: word  'single quoted'  \"esc\\n\\x00\"  0xdeadbeef  u64:42  i32:-1  @file\n\
         Ranges:          a..m  a..=m (m included)  ..m  a..  ..\n",
    );
    text
}

/// Returns the text of `help COMMAND`.
pub(super) fn help_about(about: &About) -> String {
    let usage = format!("{} {}", about.name, about.arguments);
    format!("{}\n  {}\nfor example:\n  {}\n", usage.trim_end(), about.what, about.example)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        assert_eq!(nearest("gat"), Some("get"));
        assert_eq!(nearest("pu"), Some("put"));
        assert_eq!(nearest("kespaces"), Some("keyspaces"));
        assert_eq!(nearest("select"), None);
    }

    #[test]
    fn help_has_every_command() {
        for about in ALL {
            assert!(
                help(Some(80)).lines().any(|line| line.starts_with(about.name)),
                "{}",
                about.name
            );
            assert!(help_about(about).contains(about.example));
        }
    }
}
