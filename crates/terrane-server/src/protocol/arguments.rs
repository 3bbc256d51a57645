//! The arguments of a request, in the buffer that received them or in their own memory.

use std::ops::Range;

/// A range of bytes in a buffer: an argument within its request, or a request within the received bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// Returns the span of a range; `None` if it ends after 4 GiB.
    pub(crate) fn of_range(range: Range<usize>) -> Option<Self> {
        let end = u32::try_from(range.end).ok()?;
        let start = u32::try_from(range.start).ok().filter(|start| *start <= end)?;
        Some(Self { start, len: end - start })
    }

    /// Returns the span of a part of this range.
    pub(crate) fn part(self, part: Self) -> Self {
        Self { start: self.start + part.start, len: part.len }
    }

    pub(crate) fn range(self) -> Range<usize> {
        let start = self.start as usize;
        start..start + self.len as usize
    }

    /// Returns the bytes; none if the buffer is shorter.
    #[inline]
    pub(crate) fn of(self, buffer: &[u8]) -> &[u8] {
        buffer.get(self.range()).unwrap_or_default()
    }
}

/// The arguments of a request, the name of the command first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Arguments<'a> {
    /// Returns the arguments at spans of `bytes`.
    pub(super) fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Self { bytes, spans }
    }

    /// Returns the number of arguments, including the name of the command.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether even the name is missing.
    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns an argument; empty if there is none at `index`.
    #[inline]
    pub(crate) fn at(&self, index: usize) -> &'a [u8] {
        self.get(index).unwrap_or_default()
    }

    /// Returns an argument.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).and_then(|span| self.bytes.get(span.range()))
    }

    /// Returns the span of an argument in the request, which is not an inline command.
    #[inline]
    pub(crate) fn span(&self, index: usize) -> Option<Span> {
        self.spans.get(index).copied()
    }

    /// Returns the arguments in a range of positions, as far as they exist.
    pub(crate) fn range(&self, range: Range<usize>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let all = *self;
        (range.start..range.end.min(self.len())).filter_map(move |index| all.get(index))
    }

    /// Returns the arguments from `index` on.
    pub(crate) fn from(&self, index: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.range(index..self.len())
    }

    /// Copies the arguments.
    pub(crate) fn copied(&self) -> OwnedArguments {
        let mut owned = OwnedArguments::default();
        for argument in self.from(0) {
            owned.push(argument);
        }
        owned
    }
}

/// Arguments in their own memory, for commands that run later.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnedArguments {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl OwnedArguments {
    /// Appends an argument.
    pub(crate) fn push(&mut self, argument: &[u8]) {
        // A request is at most 4 GiB long.
        let start = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let len = u32::try_from(argument.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(argument);
        self.spans.push(Span { start, len });
    }

    /// Returns the arguments.
    pub(crate) fn arguments(&self) -> Arguments<'_> {
        Arguments { bytes: &self.bytes, spans: &self.spans }
    }

    /// Returns the bytes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * size_of::<Span>()
    }
}
