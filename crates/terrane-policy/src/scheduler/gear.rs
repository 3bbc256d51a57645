//! Spring and gear: merges that end just when their outputs are needed (bLSM §4; performance-
//! stability §2.3, §4.1).
//!
//! A merge out of a level has to end before the level is full again, or what comes into the level
//! has to wait. bLSM keeps the part of a merge that is done as large as the part of its level that
//! is full again. Here the bandwidth is shared so that all merges would get there together: each in
//! proportion to what it has left over the room that is left in its level.

use super::merge::Merge;

/// A level counts as no fuller than this, so that no merge takes all of the bandwidth before the
/// level is full, and a merge of a full level takes as good as all.
const FULLEST: f64 = 0.99;

pub(super) fn shares(merges: &[Merge]) -> Vec<f64> {
    let need = |merge: &Merge| {
        let room = 1.0 - merge.refilled.clamp(0.0, FULLEST);
        merge.remaining_bytes.max(1) as f64 / room
    };
    let total: f64 = merges.iter().map(need).sum();
    merges.iter().map(|merge| need(merge) / total).collect()
}
