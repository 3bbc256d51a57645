//! A repository in memory, for tests of programs.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::repository::{Repository, Stored};

/// A repository in the memory of the process. Clones are the same repository.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    objects: Arc<Mutex<BTreeMap<String, Arc<[u8]>>>>,
}

impl Memory {
    /// Returns an empty repository.
    pub fn new() -> Self {
        Self::default()
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Arc<[u8]>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Repository for Memory {
    fn location(&self) -> String {
        "memory".to_owned()
    }

    fn put(&self, name: &str, contents: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        contents.read_to_end(&mut bytes)?;
        self.objects().insert(name.to_owned(), bytes.into());
        Ok(())
    }

    fn get(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let found = self.objects().get(name).cloned();
        found
            .map(|bytes| -> Box<dyn Read> { Box::new(io::Cursor::new(bytes)) })
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Stored>> {
        let objects = self.objects();
        let found = objects.iter().filter(|(name, _)| name.starts_with(folder));
        let stored = |(name, bytes): (&String, &Arc<[u8]>)| Stored {
            name: name.clone(),
            bytes: bytes.len() as u64,
        };
        Ok(found.map(stored).collect())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.objects().remove(name);
        Ok(())
    }
}
