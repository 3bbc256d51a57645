//! Numbers, tables and curves for people and programs.
//!
//! | module | one line |
//! |---|---|
//! | [`human`] | numbers, sizes and times as people read them |
//! | [`json`] | conventions of all JSON output |
//! | [`markdown`] | tables in Markdown |
//! | [`plot`], [`sparkline`] | curves: SVG plots and sparklines |

pub mod human;
pub mod json;
pub mod markdown;
pub mod plot;
pub mod sparkline;
