//! The fields of a row.

/// Fields in one buffer, which the next row uses again.
#[derive(Debug, Default)]
pub(super) struct Fields {
    bytes: Vec<u8>,
    /// The end of each field in `bytes`.
    ends: Vec<usize>,
    /// The positions of fields that are null.
    nulls: Vec<usize>,
}

impl Fields {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.nulls.clear();
    }

    /// The bytes of all fields, to which the current one is appended.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Ends the current field.
    pub(super) fn end(&mut self) {
        self.ends.push(self.bytes.len());
    }

    /// Ends the current field, which is null.
    pub(super) fn end_null(&mut self) {
        self.nulls.push(self.ends.len());
        self.end();
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns a field; `None` if it is null.
    pub(super) fn get(&self, at: usize) -> Option<&[u8]> {
        let is_null = !self.nulls.is_empty() && self.nulls.contains(&at);
        (!is_null).then(|| self.text(at))
    }

    /// Returns a field, which is empty if it is null.
    pub(super) fn text(&self, at: usize) -> &[u8] {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[at]]
    }

    /// Returns the fields as text.
    pub(super) fn names(&self) -> Vec<String> {
        let name = |at| String::from_utf8_lossy(self.text(at)).trim().to_owned();
        (0..self.len()).map(name).collect()
    }
}
