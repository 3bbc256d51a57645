//! The help of the command line: its subcommands, grouped by purpose.

use clap::Command;

use crate::terminal::columns;
use crate::wrap::wrapped;

/// The headings of the help, and the subcommands under each.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Measure and design",
        &[
            "bench",
            "advise",
            "simulate",
            "explore",
            "stability",
            "sweep",
            "workload",
            "replay",
            "design",
            "options",
        ],
    ),
    ("Use a database", &["shell", "serve", "load", "dump", "cs265"]),
    (
        "Operate a database, also while it is open",
        &["top", "events", "stats", "flush", "compact", "checkpoint", "backup", "keyspace"],
    ),
    ("Look inside and repair", &["inspect", "verify", "repair"]),
    ("About the command", &["help", "completions", "man"]),
];

/// The maximum width of help, even on a wide terminal, so that lines are easy to read.
const COLUMNS_MAX: usize = 100;

const HELP: &str = "Print this message or the help of a subcommand";

/// Returns the command with a help that groups its subcommands.
pub(crate) fn grouped(command: Command) -> Command {
    let mut groups = String::new();
    for (heading, names) in GROUPS {
        groups.push_str(&format!("{heading}:\n"));
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or_else(|| HELP.to_owned(), ToString::to_string);
            groups.push_str(&format!("  {name:<11}  {about}\n"));
        }
        groups.push('\n');
    }
    let groups = wrapped(&groups, columns().unwrap_or(COLUMNS_MAX).min(COLUMNS_MAX));
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_subcommand_is_in_one_group() {
        let command = crate::cli::command();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        grouped.retain(|name| *name != "help");
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
    }
}
