//! A file of its own for a job that reads a table from front to back once.
//!
//! The operating system reads ahead in these files, but not in those that readers share
//! ([`RandomReader::expect_random_reads`]).

use std::sync::Arc;

use super::open_files::SequentialPermit;
use super::open_table::OpenTable;
use super::reader::TableFile;
use crate::base::error::{Error, Result};
use crate::files::storage::RandomReader;

/// The file of one pass over a table: one of its own, or else the one that readers share.
#[derive(Debug)]
pub(super) struct SequentialFile(Option<(Arc<dyn RandomReader>, SequentialPermit)>);

impl SequentialFile {
    /// Opens the file, unless the system reads ahead in the shared one too, too many are open, or the file is gone
    /// or cannot be opened.
    pub(super) fn open(file: &TableFile) -> Self {
        let environment = &*file.environment;
        if !file.expects_random_reads() {
            return Self(None);
        }
        let permit = environment.open_files.permit_sequential();
        let open = || environment.storage.open(&file.path, environment.access).ok();
        Self(permit.and_then(|permit| Some((open()?, permit))))
    }

    /// Fills `buffer` with the bytes of the table from `offset` on.
    pub(super) fn read_into(
        &self,
        file: &TableFile,
        opened: &OpenTable,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<()> {
        match &self.0 {
            Some((own, _)) => {
                own.read_at(offset, buffer).map_err(|error| Error::io("read", &file.path, error))
            }
            None => file.read_into(&opened.reader, offset, buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use terrane_policy::Compression;

    use super::super::tests::long_table;
    use super::*;
    use crate::files::storage::{Access, MemoryStorage, Storage};

    /// Another process removes tables under a read-only opening, which keeps its files open.
    #[test]
    fn a_removed_table_is_read_through_the_shared_file() {
        let storage = MemoryStorage::new(1);
        let (_, _, table) = long_table(&storage, Compression::None, Access::Buffered, 0);
        let mut whole = [[0; 100]; 2];
        for (bytes, is_removed) in whole.iter_mut().zip([false, true]) {
            let opened = table.opened().unwrap();
            if is_removed {
                storage.remove(table.path()).unwrap();
            }
            let file = SequentialFile::open(&table.file);
            assert_eq!(file.0.is_none(), is_removed);
            file.read_into(&table.file, opened, 7, bytes).unwrap();
        }
        assert_eq!(whole[0], whole[1]);
    }
}
