//! Claims of papers as data, and the one judge of them.
//!
//! An experiment records [`Results`](crate::results::Results). A file in `claims/` has the paper's
//! sentences, the measurements that each sentence requires, and the prose of the document. The judge
//! evaluates the expressions of the file over the results; no verdict and no explanation is written
//! in code.
//!
//! | module | one line |
//! |---|---|
//! | [`claims`] | the files of claims |
//! | `checks` | finds claims that cannot fail |
//! | [`stated`] | what a paper states of a figure, as an interval |
//! | [`expression`] | parses metrics, bounds and conditions |
//! | [`figure`] | numbers with their rounds |
//! | [`value`] | numbers, lists and texts |
//! | `evaluate` | evaluates expressions over results |
//! | `functions` | operators and functions |
//! | `judged_figure` | the figures that a claim judges |
//! | [`template`] | text with expressions in it |
//! | [`verdict`] | judges claims |
//! | `document` | results and verdicts as Markdown |

mod checks;
pub mod claims;
mod document;
mod evaluate;
pub mod expression;
pub mod figure;
mod functions;
mod judged_figure;
pub mod stated;
pub mod template;
pub mod value;
pub mod verdict;

pub use claims::{Claim, ClaimFile};
pub use document::claims_table;
pub use evaluate::MeasurementKey;
pub use judged_figure::JudgedFigure;
pub use verdict::{ClaimOutcome, ClaimVerdict, counted};
