//! The commands of the shell, and what there is to know about each.

use std::time::Duration;

use terrane_lab::literal::KeyBounds;
use terrane_lab::near;

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Put { key: Vec<u8>, value: Vec<u8> },
    Get { key: Vec<u8> },
    Delete { key: Vec<u8> },
    DeleteRange(KeyBounds),
    Scan { range: KeyBounds, limit: u64, order: Order },
    Count { range: KeyBounds },
    Batch,
    End,
    Abort,
    Stats,
    Tree,
    Events { limit: usize },
    Advise(Advise),
    Flush,
    Compact(KeyBounds),
    Keyspaces,
    Use { keyspace: String },
    Help { about: Option<String> },
    Exit,
}

/// What advice is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Advise {
    /// Whether a design that is worth it is set.
    pub(super) applies: bool,
    /// What it has to gain, in percent.
    pub(super) gain: u64,
    /// In what time it has to pay for itself.
    pub(super) within: Duration,
}

/// From which end a scan begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Ascending,
    Descending,
}

/// What there is to know about a command.
#[derive(Debug)]
pub(super) struct About {
    /// How it is typed.
    pub(super) name: &'static str,
    /// What follows the name.
    pub(super) arguments: &'static str,
    /// What it does and answers.
    pub(super) what: &'static str,
    /// One that can be tried.
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

/// All commands, in the order in which `help` has them.
pub(super) const ALL: &[About] = &[
    about("put", "KEY VALUE", "set the value of a key; answers ok", "put user:42 'Ada Lovelace'"),
    about("get", "KEY", "the value of a key, or (nil)", "get user:42"),
    about(
        "del",
        "KEY | RANGE",
        "remove a key, or all keys of a range, whether there are any or not; answers ok",
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
        "the keys that begin with something, with their values",
        "prefix user: limit 10 reverse",
    ),
    about(
        "count",
        "[RANGE | prefix PREFIX]",
        "the number of keys in a range; reads all of them",
        "count prefix user:",
    ),
    about(
        "batch",
        "",
        "begin a batch: put and del commands up to `end` happen together or not at all",
        "batch",
    ),
    about("end", "", "write the batch; answers ok", "end"),
    about("abort", "", "drop the batch; answers ok", "abort"),
    about("stats", "", "what the database has done and holds since it was opened", "stats"),
    about("tree", "", "a picture of the tree of this keyspace", "tree"),
    about(
        "events",
        "[N]",
        "what happened since the database was opened: flushes, compactions and why; the last N of \
         a thousand",
        "events 10",
    ),
    about(
        "advise",
        "[apply] [gain PERCENT] [within TIME]",
        "which design suits what was done since the last advice; with apply it is set if it gains as \
         much (10) and pays for itself in time (1h)",
        "advise apply gain 15 within 10min",
    ),
    about("flush", "", "write what is in memory into tables; answers ok", "flush"),
    about(
        "compact",
        "[RANGE]",
        "merge everything in a range into the last level that holds any of it; answers ok",
        "compact a..m",
    ),
    about("keyspaces", "", "the names of the keyspaces", "keyspaces"),
    about(
        "use",
        "KEYSPACE",
        "go to a keyspace; it is made if there is none; answers ok",
        "use logs",
    ),
    about("help", "[COMMAND]", "all commands, or one of them", "help scan"),
    about("exit", "", "leave; so does Ctrl-D", "exit"),
];

/// The command of a name.
pub(super) fn find(name: &str) -> Option<&'static About> {
    ALL.iter().find(|about| about.name == name)
}

/// The command that was probably meant by `name`.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    near::nearest(name, ALL.iter().map(|about| about.name))
}

/// The text of `help`.
pub(super) fn help() -> String {
    let usages: Vec<String> =
        ALL.iter().map(|about| format!("{} {}", about.name, about.arguments)).collect();
    let width = usages.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for (usage, about) in usages.iter().zip(ALL) {
        text.push_str(&format!("{usage:<width$}  {}\n", about.what));
    }
    text.push_str(
        "\nKeys and values: word  'single quoted'  \"esc\\n\\x00\"  0xdeadbeef  u64:42  i32:-1  @file\n\
         Ranges:          a..m  a..=m (m included)  ..m  a..  ..\n",
    );
    text
}

/// The text of `help COMMAND`.
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
            assert!(help().lines().any(|line| line.starts_with(about.name)), "{}", about.name);
            assert!(help_about(about).contains(about.example));
        }
    }
}
