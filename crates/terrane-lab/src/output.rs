//! Numbers, tables and curves for people and programs.
//!
//! | module | one line |
//! |---|---|
//! | [`human`] | numbers, sizes and times as people read them |
//! | [`json`] | conventions of all JSON output |
//! | [`markdown`] | tables in Markdown |
//! | [`sentinels`] | finds numbers that stand for missing ones |
//! | [`plot`], [`sparkline`] | curves: SVG plots and sparklines |

pub mod human;
pub mod json;
pub mod markdown;
pub mod plot;
pub mod sentinels;
pub mod sparkline;
