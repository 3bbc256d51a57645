//! A design that a caller passes to an opening.

use std::fmt;
use std::str::FromStr;

use terrane_policy::Design;

/// A design, and how an opening treats a stored design that differs from it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestedDesign {
    pub(crate) value: Design,
    pub(crate) if_other: IfOther,
}

/// How an opening treats a stored design that differs from the requested one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfOther {
    /// The opening fails.
    Refuse,
    /// The stored design is kept.
    Keep,
    /// The opening changes the design.
    Change,
}

impl RequestedDesign {
    pub(crate) fn new(value: Design, if_other: IfOther) -> Self {
        Self { value, if_other }
    }

    /// Returns the design if the opening must change the stored design to it.
    pub(crate) fn to_change(&self) -> Option<&Design> {
        (self.if_other == IfOther::Change).then_some(&self.value)
    }
}

impl From<Design> for RequestedDesign {
    fn from(value: Design) -> Self {
        Self::new(value, IfOther::Refuse)
    }
}

impl FromStr for RequestedDesign {
    type Err = terrane_policy::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<Design>().map(Self::from)
    }
}

impl fmt::Display for RequestedDesign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
