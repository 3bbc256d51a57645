//! Point lookups and scans.

pub(crate) mod lookup;
pub(crate) mod multi_get;
pub(crate) mod parallel;
pub(crate) mod pool;
pub(crate) mod scan;
