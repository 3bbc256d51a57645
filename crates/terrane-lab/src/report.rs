//! Reports of measurements: what `bench --out` and `simulate --out` leave in a directory.
//!
//! | module | one line |
//! |---|---|
//! | [`figures`] | the files of a report |
//! | [`page`] | parts of pages in HTML |
//! | [`csv`] | fields of CSV |
//! | [`environment`] | the setting of a measurement |
//! | [`benched`], [`simulated`] | the figures of `bench` and of `simulate` |

pub mod benched;
pub mod csv;
pub mod environment;
pub mod figures;
pub mod page;
pub mod simulated;

pub use environment::Environment;
