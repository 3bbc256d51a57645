//! The scheduler as a value with a text form.

mod fair;
mod gear;
mod greedy;
mod single;

use std::fmt;
use std::str::FromStr;

use super::merge::{MergeDemand, SchedulerInfo};
use crate::error::ParseError;
use crate::text::call;

/// Generates [`Scheduler`] from a list of rules, each with the module that has its
/// [`SchedulerInfo`].
macro_rules! schedulers {
    ($($(#[doc = $doc:literal])* $name:ident $({ $(#[doc = $about:literal])* $argument:ident: u32 = $usual:literal })? => $module:ident,)*) => {
        /// The rule by which merges get bandwidth.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Scheduler {
            $(
                $(#[doc = $doc])*
                $name $({
                    $(#[doc = $about])*
                    $argument: u32,
                })?,
            )*
        }

        impl Scheduler {
            /// All schedulers, with their usual arguments.
            pub const ALL: &'static [Scheduler] = &[$(Self::$name $({ $argument: $usual })?),*];

            /// The properties of the scheduler.
            pub fn info(self) -> &'static SchedulerInfo {
                match self {
                    $(Self::$name { .. } => &$module::INFO,)*
                }
            }

            /// Returns the scheduler's argument, if it has one.
            fn argument(self) -> Option<u32> {
                match self {
                    $($(Self::$name { $argument } => Some($argument),)?)*
                    _ => None,
                }
            }

            /// Returns the scheduler with another argument; `None` if the scheduler takes no
            /// argument.
            fn with_argument(self, value: u32) -> Option<Self> {
                match self {
                    $($(Self::$name { .. } => Some(Self::$name { $argument: value }),)?)*
                    _ => None,
                }
            }
        }
    };
}

schedulers! {
    /// One merge at a time, in the order in which they were created.
    Single => single,
    /// All merges at the same speed.
    Fair => fair,
    /// The merges with the least input left, all at the same speed; the others pause.
    Greedy {
        /// The number of merges that each tree runs; 1 in the paper.
        merges: u32 = 1
    } => greedy,
    /// All merges at the speed at which their outputs are needed.
    Gear => gear,
}

impl Scheduler {
    /// Returns true if shares change as merges progress; otherwise they change only when a merge
    /// begins or ends.
    pub fn changes_with_progress(self) -> bool {
        (self.info().changes_with_progress)(self.argument().unwrap_or_default())
    }

    /// Returns each merge's share of the bandwidth if `slots` trees may run merges.
    pub(super) fn shares(self, merges: &[MergeDemand], slots: usize) -> Vec<f64> {
        (self.info().shares)(merges, self.argument().unwrap_or_default(), slots)
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)?;
        match self.argument() {
            Some(argument) if !Self::ALL.contains(self) => write!(f, "({argument})"),
            _ => Ok(()),
        }
    }
}

impl FromStr for Scheduler {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || {
            let names: Vec<&str> = Self::ALL.iter().map(|one| one.info().name).collect();
            let names = format!("{}, or greedy(2)", names.join(", "));
            ParseError::unknown_name("scheduler", text, &names)
        };
        let (name, argument) = call(text)?;
        let is_called = |one: &&Scheduler| {
            let info = one.info();
            info.name == name || info.aliases.contains(&name)
        };
        let usual = *Self::ALL.iter().find(is_called).ok_or_else(bad)?;
        let Some(argument) = argument else { return Ok(usual) };
        let value = argument.parse().ok().filter(|value| (1..=usual.info().most).contains(value));
        value.and_then(|value| usual.with_argument(value)).ok_or_else(bad)
    }
}
