//! The kinds of writes and their proportions.

/// The additional bytes that the engine stores with an expiring value.
pub(crate) const EXPIRY_BYTES: f64 = 8.0;

/// The kinds of writes, as shares of all writes. All others are updates of existing keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WriteMix {
    /// The share that inserts new keys.
    pub inserts: f64,
    /// The share that deletes a key.
    pub deletes: f64,
    /// The share that deletes a range of keys.
    pub range_deletes: f64,
    /// The share of the key space that a range delete covers.
    pub range_width: f64,
    /// True if updates also write deleted keys again, so that all keys remain equally likely.
    /// Otherwise, updates and deletes choose existing keys.
    pub deleted_return: bool,
    /// The share of the inserts and updates whose values expire.
    pub expiring: f64,
    /// The time from a write to the expiry of its value, in seconds.
    pub ttl_seconds: f64,
}

impl Default for WriteMix {
    fn default() -> Self {
        Self {
            inserts: 0.0,
            deletes: 0.0,
            range_deletes: 0.0,
            range_width: 0.0,
            deleted_return: true,
            expiring: 0.0,
            ttl_seconds: f64::INFINITY,
        }
    }
}

impl WriteMix {
    /// Returns the mean bytes per write that the engine stores for expiry times.
    pub(crate) fn expiry_bytes(&self) -> f64 {
        self.expiring * (1.0 - self.deletes - self.range_deletes) * EXPIRY_BYTES
    }

    /// Returns the mean bytes of key and value per write, with keys and records of these sizes.
    pub(crate) fn bytes(&self, key_bytes: f64, record_bytes: f64) -> f64 {
        let puts = 1.0 - self.deletes - self.range_deletes;
        puts * record_bytes + (self.deletes + 2.0 * self.range_deletes) * key_bytes
    }
}
