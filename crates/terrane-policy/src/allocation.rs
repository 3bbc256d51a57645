//! How a budget is divided among levels: arithmetic from the papers.
//!
//! | function | divides | source |
//! |---|---|---|
//! | [`filter_bits`] | the memory of filters | Monkey §4 |
//! | [`ttl_deadlines`] | the time within which a delete must be persistent | Lethe §4.1 |
//! | [`bush_ratio`] | the growth of capacities | LSM-Bush §4 |

mod monkey;
mod ttl;

pub use crate::strategy::bush_ratio;
pub use monkey::{LevelLoad, bits_for_rate, false_positive_rate, filter_bits};
pub use ttl::ttl_deadlines;
