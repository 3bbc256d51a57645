//! A flag for every option of the engine, generated from the engine's table of options.
//!
//! A new option of the engine is therefore a flag automatically. `design` is left out because
//! commands define it themselves.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use terrane::{OptionInfo, Options};

use crate::exit::usage;
use crate::open;

/// Options given as flags.
#[derive(Debug, Clone, Default)]
pub(crate) struct EngineFlags {
    given: Vec<(&'static str, String)>,
}

const HEADING: &str = "Engine options (see `terrane options`)";

impl EngineFlags {
    /// Returns options with these flags set.
    pub(crate) fn options(&self) -> anyhow::Result<Options> {
        let mut options = open::options();
        for (name, value) in &self.given {
            options.set(name, value).map_err(|error| usage(error.to_string()))?;
        }
        Ok(options)
    }

    /// Returns the text of an option, if it was given.
    pub(crate) fn given(&self, option: &str) -> Option<&str> {
        let mut given = self.given.iter().rev();
        given.find(|(name, _)| *name == option).map(|(_, value)| value.as_str())
    }
}

fn flags() -> impl Iterator<Item = OptionInfo> {
    Options::table().into_iter().filter(|info| info.name != "design")
}

/// Names of the library that occur in the documentation of options, and what users of the command
/// read instead.
const LIBRARY_WORDS: [(&str, &str); 5] = [
    ("; later with Db::set_io_budget", ""),
    (" See Design for its text form.", ""),
    ("; see Durability.", "."),
    ("with Db::set_design", "with terrane design set"),
    ("Db::set_design", "terrane design set"),
];

/// Formats documentation for a terminal: one line, without links and code marks.
pub(crate) fn plain(text: &str) -> String {
    let text = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let mut text = text.replace("[`", "").replace("`]", "").replace('`', "");
    for (of_the_library, of_the_command) in LIBRARY_WORDS {
        text = text.replace(of_the_library, of_the_command);
    }
    text
}

/// Returns the first sentence.
fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}

impl Args for EngineFlags {
    fn augment_args(mut command: Command) -> Command {
        for info in flags() {
            let about = plain(info.about);
            let help = format!(
                "{} [default: {}; accepts {}]",
                first_sentence(&about),
                info.default,
                plain(info.accepted)
            );
            let name = info.name;
            let check = move |value: &str| {
                let checked = Options::new().set(name, value).map(|()| value.to_owned());
                checked.map_err(|error| error.to_string())
            };
            let flag = Arg::new(name).long(name.replace('_', "-")).value_name("VALUE");
            command = command.arg(flag.help(help).help_heading(HEADING).value_parser(check));
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for EngineFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Vec::new();
        for info in flags() {
            given
                .extend(matches.get_one::<String>(info.name).map(|text| (info.name, text.clone())));
        }
        Ok(Self { given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<EngineFlags, clap::Error> {
        let command = EngineFlags::augment_args(Command::new("test"));
        let arguments = std::iter::once(&"test").chain(arguments);
        EngineFlags::from_arg_matches(&command.try_get_matches_from(arguments)?)
    }

    #[test]
    fn every_option_is_a_flag_and_bad_values_are_refused() {
        let flags = parse(&["--memory-budget", "64MiB", "--read-mode=cached"]).unwrap();
        let given =
            |name| flags.given.iter().find(|(given, _)| *given == name).map(|(_, v)| &v[..]);
        assert_eq!(given("memory_budget"), Some("64MiB"));
        assert_eq!(given("read_mode"), Some("cached"));
        assert_eq!(given("durability"), None);
        flags.options().unwrap();
        assert!(parse(&["--read-mode", "psychic"]).is_err());
        assert!(parse(&["--design", "balanced"]).is_err());
    }

    #[test]
    fn documentation_is_plain() {
        let text = plain(" See [`Keyspace`] for\n its `text` form.");
        assert_eq!(text, "See Keyspace for its text form.");
        for info in flags() {
            let text = plain(info.about) + &plain(info.takes_effect);
            assert!(!text.contains('`') && !text.contains("Db::"), "{text}");
        }
        assert_eq!(first_sentence("One. Two."), "One");
    }
}
