//! Quantities as text: [counts](parse_count), [bytes](parse_bytes) and [times](parse_micros).

mod bytes;
mod count;
mod duration;
mod grouped;
mod number;
mod short;

pub use bytes::{format_bytes, parse_bytes};
pub use count::parse_count;
pub use duration::{format_micros, parse_micros};
pub use grouped::grouped;
pub(crate) use number::parse_ratio_percent;
pub use short::{short_bytes, short_micros};
