//! The registration of all kinds of memtable, and the dispatch to their structures.
//!
//! [`kinds!`] generates [`Config`], the structure and the position of every kind, and all matches
//! over them, so that a kind is a file that implements `structure`'s traits and one line here.
//! Dispatch is static: one match per call, whose arms are inlined.

mod counted;

use std::fmt;
use std::sync::Arc;

use crate::btree::BTreeConfig;
use crate::entry::{Entry, SeqNo};
use crate::entry_counts::EntryCounts;
use crate::flodb::FloDbConfig;
use crate::hash::{HashLinkedListConfig, HashSkipListConfig, HashVectorConfig};
use crate::key_span::KeySpan;
use crate::pool::Pool;
use crate::readers::ReaderView;
use crate::skiplist::SkipListConfig;
use crate::skiplist::versions::Pin;
use crate::structure::{
    Found, FrontLevel, Hold, InsertOutcome, ReadBounds, Settings, Structure, StructurePosition,
};
use crate::vector::VectorConfig;

use counted::{counts_of, insert, insert_all, is_empty};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($settings:ty),)*) => {
        /// Which structure holds the entries, with its settings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Config {
            $($(#[$doc])* $kind($settings),)*
        }

        $(const _: () = assert!(
            !<$settings as Settings>::EXAMPLES.is_empty(),
            "every kind needs an example"
        );)*

        impl Config {
            /// The names of all kinds.
            pub const KINDS: &[&str] = &[$(stringify!($kind)),*];

            /// Returns the name of the kind.
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => stringify!($kind),)*
                }
            }

            /// Returns named examples of every kind, from which tests draw.
            pub fn examples() -> impl Iterator<Item = (String, Self)> {
                let mut examples = Vec::new();
                $(examples.extend(<$settings as Settings>::EXAMPLES.iter().map(|example| {
                    (format!("{} {}", stringify!($kind), example.0), Self::$kind(example.1))
                }));)*
                examples.into_iter()
            }

            /// The smallest example of every kind, for models that visit all interleavings.
            pub const SMALLEST: &[Self] =
                &[$(Self::$kind(<$settings as Settings>::SMALLEST)),*];

            /// Returns the usual settings of every kind for a memtable of this many entries.
            pub fn usual(entries: usize) -> Vec<Self> {
                vec![$(Self::$kind(<$settings as Settings>::usual(entries))),*]
            }

            /// Creates an empty structure; see [`Settings::build`].
            pub(crate) fn build(
                self,
                pool: Arc<Pool>,
                span: impl FnOnce() -> Option<KeySpan>,
            ) -> AnyStructure {
                match self {
                    $(Self::$kind(settings) => AnyStructure::$kind(settings.build(pool, span)),)*
                }
            }
        }

        /// The structure of a memtable of any kind.
        #[allow(clippy::large_enum_variant, reason = "there is one for each memtable")]
        pub(crate) enum AnyStructure {
            $($kind(<$settings as Settings>::Structure),)*
        }

        impl fmt::Debug for AnyStructure {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$kind(_) => stringify!($kind),)*
                })
            }
        }

        /// See [`Structure`] for what the methods do.
        impl AnyStructure {
            /// Inserts a version, and counts it.
            #[inline]
            pub(crate) fn insert(
                &self,
                entry: &Entry<'_>,
                view: &ReaderView<'_>,
                counts: &EntryCounts,
            ) -> InsertOutcome {
                match self {
                    $(Self::$kind(structure) => insert(structure, entry, view, counts),)*
                }
            }

            /// Inserts several versions, and counts them.
            pub(crate) fn insert_all(&self, entries: &[Entry<'_>], counts: &EntryCounts) {
                match self {
                    $(Self::$kind(structure) => insert_all(structure, entries, counts),)*
                }
            }

            #[inline]
            pub(crate) fn reclaim_hidden(&self, key: &[u8], seq: SeqNo, view: &ReaderView<'_>) {
                match self {
                    $(Self::$kind(structure) => structure.reclaim_hidden(key, seq, view),)*
                }
            }

            pub(crate) fn inserts_groups(&self) -> bool {
                match self {
                    $(Self::$kind(_) => <$settings as Settings>::Structure::INSERTS_GROUPS,)*
                }
            }

            #[inline]
            pub(crate) fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
                match self {
                    $(Self::$kind(structure) => Structure::get(structure, key, seq),)*
                }
            }

            #[inline]
            pub(crate) fn look_up(
                &self,
                key: &[u8],
                seq: SeqNo,
                hold: Hold,
            ) -> Found<'_> {
                match self {
                    $(Self::$kind(structure) => structure.look_up(key, seq, hold),)*
                }
            }

            pub(crate) fn get_all<'a>(
                &'a self,
                keys: &[&[u8]],
                seq: SeqNo,
                found: &mut dyn FnMut(usize, Found<'a>),
            ) {
                match self {
                    $(Self::$kind(structure) => structure.get_all(keys, seq, found),)*
                }
            }

            /// Returns the number of entries and their bytes of keys and values.
            pub(crate) fn counts(&self, counts: &EntryCounts) -> (usize, usize) {
                match self {
                    $(Self::$kind(structure) => counts_of(structure, counts),)*
                }
            }

            /// Returns true if the structure has no entries.
            pub(crate) fn is_empty(&self, counts: &EntryCounts) -> bool {
                match self {
                    $(Self::$kind(structure) => is_empty(structure, counts),)*
                }
            }

            pub(crate) fn usage(&self) -> (usize, usize) {
                match self {
                    $(Self::$kind(structure) => Structure::usage(structure),)*
                }
            }

            pub(crate) fn charged_bytes(&self) -> usize {
                match self {
                    $(Self::$kind(structure) => structure.charged_bytes(),)*
                }
            }

            pub(crate) fn exempt_bytes(&self) -> usize {
                match self {
                    $(Self::$kind(structure) => structure.exempt_bytes(),)*
                }
            }

            pub(crate) fn freeze(&self) {
                match self {
                    $(Self::$kind(structure) => Structure::freeze(structure),)*
                }
            }

            pub(crate) fn key_span(&self) -> Option<KeySpan> {
                match self {
                    $(Self::$kind(structure) => structure.key_span(),)*
                }
            }

            #[inline]
            pub(crate) fn front_level(&self) -> Option<&dyn FrontLevel> {
                match self {
                    $(Self::$kind(structure) => structure.front_level(),)*
                }
            }
        }

        /// A position in the structure of a memtable of any kind.
        ///
        /// Invariant 1: all calls pass the structure that the position was created for, because
        /// [`crate::Cursor`] keeps both together. So the kinds match.
        pub(crate) enum AnyPosition {
            $($kind(<<$settings as Settings>::Structure as Structure>::Position),)*
        }

        /// See [`StructurePosition`] for what the methods do.
        ///
        /// # Safety
        /// The unsafe methods require that all calls on the position have passed this very
        /// structure.
        impl AnyPosition {
            /// Creates a position on no entry.
            pub(crate) fn new(structure: &AnyStructure) -> Self {
                match structure {
                    $(AnyStructure::$kind(_) => Self::$kind(Default::default()),)*
                }
            }

            pub(crate) fn uses_bounds(&self) -> bool {
                fn of<S: Structure, P: StructurePosition<S>>(_position: &P) -> bool {
                    P::USES_BOUNDS
                }
                match self {
                    $(Self::$kind(position) => {
                        of::<<$settings as Settings>::Structure, _>(position)
                    })*
                }
            }

            #[inline]
            pub(crate) unsafe fn entry<'a>(
                &'a self,
                structure: &'a AnyStructure,
            ) -> Option<Entry<'a>> {
                match (self, structure) {
                    $((Self::$kind(position), AnyStructure::$kind(structure)) => {
                        // SAFETY: the caller passes the structure of the position (invariant 1).
                        unsafe { position.entry(structure) }
                    })*
                    _ => None,
                }
            }

            /// Returns a pin that keeps the entry from being refilled.
            pub(crate) fn pin(&self) -> Pin {
                fn of<S: Structure, P: StructurePosition<S>>(position: &P) -> Pin {
                    position.pin()
                }
                match self {
                    $(Self::$kind(position) => {
                        of::<<$settings as Settings>::Structure, _>(position)
                    })*
                }
            }

            pub(crate) fn seek_first(&mut self, structure: &AnyStructure) {
                match (self, structure) {
                    $((Self::$kind(position), AnyStructure::$kind(structure)) => {
                        position.seek_first(structure);
                    })*
                    _ => {}
                }
            }

            pub(crate) fn seek_last(&mut self, structure: &AnyStructure) {
                match (self, structure) {
                    $((Self::$kind(position), AnyStructure::$kind(structure)) => {
                        position.seek_last(structure);
                    })*
                    _ => {}
                }
            }

            pub(crate) fn seek(
                &mut self,
                structure: &AnyStructure,
                key: &[u8],
                seq: SeqNo,
                bounds: &ReadBounds,
            ) {
                match (self, structure) {
                    $((Self::$kind(position), AnyStructure::$kind(structure)) => {
                        position.seek(structure, key, seq, bounds);
                    })*
                    _ => {}
                }
            }

            pub(crate) fn seek_before(
                &mut self,
                structure: &AnyStructure,
                key: &[u8],
                seq: SeqNo,
                bounds: &ReadBounds,
            ) {
                match (self, structure) {
                    $((Self::$kind(position), AnyStructure::$kind(structure)) => {
                        position.seek_before(structure, key, seq, bounds);
                    })*
                    _ => {}
                }
            }

            #[inline]
            pub(crate) unsafe fn next(&mut self, structure: &AnyStructure, bounds: &ReadBounds) {
                match (self, structure) {
                    $((Self::$kind(position), AnyStructure::$kind(structure)) => {
                        // SAFETY: the caller passes the structure of the position (invariant 1).
                        unsafe { position.next(structure, bounds) };
                    })*
                    _ => {}
                }
            }

            pub(crate) unsafe fn previous(
                &mut self,
                structure: &AnyStructure,
                bounds: &ReadBounds,
            ) {
                match (self, structure) {
                    $((Self::$kind(position), AnyStructure::$kind(structure)) => {
                        // SAFETY: the caller passes the structure of the position (invariant 1).
                        unsafe { position.previous(structure, bounds) };
                    })*
                    _ => {}
                }
            }

            pub(crate) fn skip_front_level(&mut self, structure: &AnyStructure) {
                match (self, structure) {
                    $((Self::$kind(position), AnyStructure::$kind(structure)) => {
                        position.skip_front_level(structure);
                    })*
                    _ => {}
                }
            }
        }
    };
}

kinds! {
    /// The concurrent B-link tree.
    BTree(BTreeConfig),
    /// The concurrent skip-list.
    SkipList(SkipListConfig),
    /// An array in the order of arrival.
    Vector(VectorConfig),
    /// A skip-list in each bucket of a hash table.
    HashSkipList(HashSkipListConfig),
    /// A sorted linked list in each bucket of a hash table.
    HashLinkedList(HashLinkedListConfig),
    /// Entries in the order of arrival in each bucket of a hash table.
    HashVector(HashVectorConfig),
    /// FloDB's two levels: a hash table in front of an ordered structure.
    FloDb(FloDbConfig),
}
