//! Claims of papers as data, and the one judge of them.
//!
//! An experiment records [`Results`](crate::results::Results). A file in `claims/` has the sentences
//! of the paper, what each of them requires of the measurements, and the prose of the document. The
//! judge evaluates the expressions of the file over the results; no verdict and no explanation is
//! written in code.
//!
//! | module | one line |
//! |---|---|
//! | [`claims`] | the files of claims |
//! | [`expression`] | parses metrics, bounds and conditions |
//! | [`value`] | numbers, lists and texts |
//! | `evaluate` | evaluates expressions over results |
//! | [`template`] | text with expressions in it |
//! | [`verdict`] | which claims hold |
//! | `document` | results and verdicts as Markdown |

pub mod claims;
mod document;
mod evaluate;
pub mod expression;
pub mod template;
pub mod value;
pub mod verdict;

pub use claims::{Claim, ClaimFile, PaperValue};
pub use verdict::{ClaimOutcome, ClaimVerdict};
