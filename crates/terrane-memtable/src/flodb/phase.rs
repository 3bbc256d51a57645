//! The phases of a pass that reclaims versions.

/// The number of a phase. Its lowest bits are the [`Phase`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PhaseNumber(pub(super) u64);

/// What a pass does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// No pass is under way.
    Over = 0,
    /// Reclaims within chains.
    Pruning = 1,
    /// Drains.
    Draining = 2,
}

impl PhaseNumber {
    const KIND_BITS: u32 = 2;

    pub(super) fn phase(self) -> Phase {
        match self.0 % (1 << Self::KIND_BITS) {
            0 => Phase::Over,
            1 => Phase::Pruning,
            _ => Phase::Draining,
        }
    }

    /// Returns the number of the phase after this one.
    pub(super) fn next(self, phase: Phase) -> Self {
        Self((((self.0 >> Self::KIND_BITS) + 1) << Self::KIND_BITS) | phase as u64)
    }
}

/// How far a phase has come in a partition.
#[derive(Debug, Default)]
pub(super) struct PassPlace {
    pub(super) phase: PhaseNumber,
    /// The next word of bits.
    pub(super) word: usize,
}
