//! Reports of measurements: what `bench --out` and `simulate --out` leave in a directory.
//!
//! | module | one line |
//! |---|---|
//! | [`figures`] | the files of a report |
//! | [`run_page`] | a run as one page: the page of the explorer with the run inside |
//! | [`page`] | parts of other pages in HTML |
//! | [`csv`] | fields of CSV |

pub mod csv;
pub mod figures;
pub mod page;
pub mod run_page;
