//! The settings of the three hashed kinds.

use std::sync::Arc;

use super::{BucketForm, HashView, Hashed, ListHeights, TableShape};
use crate::key_span::KeySpan;
use crate::pool::Pool;
use crate::skiplist::MAX_HEIGHT;
use crate::structure::Settings;

/// The number of links in the head of an empty bucket's skip-list: enough for a few hundred nodes
/// if one node in four of each height also has the next height.
const HEAD_HEIGHT: usize = 4;

/// The settings of a hash skip-list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashSkipListConfig {
    /// The length of the prefix of a key that chooses its bucket, in bytes.
    pub prefix: usize,
    /// The number of buckets; at least 1.
    pub buckets: usize,
    /// The largest height of a node; 1 to 20.
    pub height: u8,
    /// How a range that leaves a prefix is served.
    pub view: HashView,
}

/// The settings of a hash linked-list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashLinkedListConfig {
    /// The length of the prefix of a key that chooses its bucket, in bytes.
    pub prefix: usize,
    /// The number of buckets; at least 1.
    pub buckets: usize,
    /// The number of entries from which a list becomes a skip-list; 0 means never.
    pub threshold: usize,
    /// How a range that leaves a prefix is served.
    pub view: HashView,
}

/// The settings of a hash vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashVectorConfig {
    /// The length of the prefix of a key that chooses its bucket, in bytes.
    pub prefix: usize,
    /// The number of buckets; at least 1.
    pub buckets: usize,
    /// How a range that leaves a prefix is served.
    pub view: HashView,
}

const KEPT: HashView = HashView::Kept;
const COPY: HashView = HashView::Copy;

impl Settings for HashSkipListConfig {
    type Structure = Hashed;

    const EXAMPLES: &'static [(&'static str, Self)] = &[
        ("as usual", Self { prefix: 6, buckets: 20_000, height: 12, view: KEPT }),
        ("of few buckets", Self { prefix: 2, buckets: 7, height: 12, view: KEPT }),
        ("of one bucket", Self { prefix: 0, buckets: 1, height: 12, view: KEPT }),
        ("of long prefixes", Self { prefix: 14, buckets: 1000, height: 12, view: KEPT }),
        ("that copies", Self { prefix: 1, buckets: 3, height: 12, view: COPY }),
    ];

    /// Each prefix has its own bucket, so that every step of a scan leaves a bucket.
    const SMALLEST: Self = Self { prefix: 1, buckets: 2, height: 2, view: KEPT };

    fn usual(entries: usize) -> Self {
        Self { prefix: 6, buckets: (entries / 5).max(1), height: 12, view: KEPT }
    }

    fn build(self, pool: Arc<Pool>, _span: impl FnOnce() -> Option<KeySpan>) -> Hashed {
        let max = usize::from(self.height).clamp(1, MAX_HEIGHT);
        let heights = ListHeights { head: max.min(HEAD_HEIGHT), max, tall_from: 0 };
        let form = BucketForm::List(heights);
        Hashed::new(
            TableShape { prefix: self.prefix, buckets: self.buckets, form },
            self.view,
            pool,
        )
    }
}

impl Settings for HashLinkedListConfig {
    type Structure = Hashed;

    const EXAMPLES: &'static [(&'static str, Self)] = &[
        ("as usual", Self { prefix: 4, buckets: 5000, threshold: 20, view: KEPT }),
        ("that stays linked", Self { prefix: 2, buckets: 50, threshold: 0, view: KEPT }),
        ("of tall buckets", Self { prefix: 1, buckets: 3, threshold: 4, view: KEPT }),
    ];

    const SMALLEST: Self = Self { prefix: 1, buckets: 1, threshold: 1, view: KEPT };

    fn usual(entries: usize) -> Self {
        Self { prefix: 6, buckets: (entries / 5).max(1), threshold: 256, view: KEPT }
    }

    fn build(self, pool: Arc<Pool>, _span: impl FnOnce() -> Option<KeySpan>) -> Hashed {
        let max = if self.threshold == 0 { 1 } else { MAX_HEIGHT };
        let form = BucketForm::List(ListHeights { head: 1, max, tall_from: self.threshold });
        Hashed::new(
            TableShape { prefix: self.prefix, buckets: self.buckets, form },
            self.view,
            pool,
        )
    }
}

impl Settings for HashVectorConfig {
    type Structure = Hashed;

    const EXAMPLES: &'static [(&'static str, Self)] = &[
        ("as usual", Self { prefix: 255, buckets: 20_000, view: KEPT }),
        ("of few buckets", Self { prefix: 255, buckets: 500, view: KEPT }),
        ("of short prefixes", Self { prefix: 1, buckets: 3, view: KEPT }),
        ("of long chains", Self { prefix: 2, buckets: 5, view: KEPT }),
        ("of one bucket", Self { prefix: 0, buckets: 1, view: KEPT }),
        ("that copies", Self { prefix: 2, buckets: 50, view: COPY }),
    ];

    const SMALLEST: Self = Self { prefix: 1, buckets: 1, view: KEPT };

    fn usual(entries: usize) -> Self {
        Self { prefix: 255, buckets: entries.max(1), view: KEPT }
    }

    fn build(self, pool: Arc<Pool>, _span: impl FnOnce() -> Option<KeySpan>) -> Hashed {
        let form = BucketForm::Chain;
        Hashed::new(
            TableShape { prefix: self.prefix, buckets: self.buckets, form },
            self.view,
            pool,
        )
    }
}
