//! Reports of measurements: what `bench --out` and `simulate --out` leave in a directory.
//!
//! | module | one line |
//! |---|---|
//! | [`figures`] | the files of a report |
//! | [`page`] | parts of pages in HTML |
//! | [`csv`] | fields of CSV |

pub mod csv;
pub mod figures;
pub mod page;
