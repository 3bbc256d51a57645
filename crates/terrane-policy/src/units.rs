//! Quantities as text: [bytes](parse_bytes) and [times](parse_micros).

mod bytes;
mod duration;

pub use bytes::{format_bytes, parse_bytes};
pub use duration::{format_micros, parse_micros};
