//! Formats sizes for people.

pub(crate) use terrane_policy::units::short_bytes as human;
