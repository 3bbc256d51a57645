//! A repository in an object store: S3 or a store that speaks its protocol, Google Cloud Storage, Azure, or
//! any other that the crate [`object_store`] supports.
//!
//! 1. An object appears as a whole: a small one is stored by one request, a larger one in parts that the
//!    store joins at the end. A killed process leaves an incomplete upload, which is not an object.
//! 2. A reader holds at most two pieces of an object, and a writer at most [`upload::IN_FLIGHT`]
//!    parts plus one. Each piece has its own request, so that an operation with a slow pace makes
//!    only short requests.
//! 3. Requests run on threads of the repository. Any thread may make one, even a thread of an
//!    asynchronous runtime, which is blocked until the request is done.

mod body;
mod upload;
mod url;

use std::fmt;
use std::future::{Future, poll_fn};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use object_store::path::Path;
use object_store::{Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, UpdateVersion};
use tokio::runtime::{Builder, Runtime};

use self::body::Body;
use crate::content::ContentId;
use crate::repository::{Repository, Stored};

/// The size of the pieces in which large objects are stored and read. S3 allows parts from 5 MiB. Each
/// piece needs its own request, which takes some tens of milliseconds in addition to the transfer.
const PIECE_BYTES: usize = 8 << 20;

/// The threads of a repository, which wait for the network most of the time.
const THREADS: usize = 2;

/// A repository in an object store.
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    location: String,
    threads: Threads,
}

impl Bucket {
    /// Returns the repository below `prefix` in an object store, which the first backup creates. `location` is its
    /// name in messages.
    ///
    /// # Errors
    /// The prefix has an empty part, or threads cannot be started.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        prefix: &str,
        location: impl Into<String>,
    ) -> io::Result<Self> {
        let prefix = Path::parse(prefix)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Self { store, prefix, location: location.into(), threads: Threads::start()? })
    }

    fn path(&self, name: &str) -> io::Result<Path> {
        let path = match self.prefix.as_ref() {
            "" => Path::parse(name),
            prefix => Path::parse(format!("{prefix}/{name}")),
        };
        path.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
    }

    /// Returns the name of an object in this repository.
    fn name_of(&self, path: &Path) -> Option<String> {
        let name = match self.prefix.as_ref() {
            "" => path.as_ref(),
            prefix => path.as_ref().strip_prefix(prefix)?.strip_prefix('/')?,
        };
        Some(name.to_owned())
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("location", &self.location).finish_non_exhaustive()
    }
}

impl Repository for Bucket {
    fn location(&self) -> String {
        self.location.clone()
    }

    fn put(&self, name: &str, contents: &mut dyn Read) -> io::Result<()> {
        let bytes = ContentId::of_object(name).map_or(0, |content| content.bytes());
        upload::upload(self, &self.path(name)?, upload::part_bytes(bytes), contents)
    }

    fn get(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let expected = ContentId::of_object(name).map_or(0, |content| content.bytes());
        Ok(Box::new(Body::open(self, self.path(name)?, expected)?))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Stored>> {
        let folder = match folder.trim_end_matches('/') {
            "" => self.prefix.clone(),
            folder => self.path(folder)?,
        };
        let folder = (!folder.as_ref().is_empty()).then_some(folder);
        let mut listed = self.store.list(folder.as_ref());
        let found = self.wait(async move {
            let mut found = Vec::new();
            while let Some(one) = poll_fn(|context| listed.as_mut().poll_next(context)).await {
                found.push(one?);
            }
            Ok(found)
        })?;
        let stored = found
            .into_iter()
            .filter_map(|one| Some(Stored { name: self.name_of(&one.location)?, bytes: one.size }));
        Ok(stored.collect())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let (store, path) = (Arc::clone(&self.store), self.path(name)?);
        match self.wait(async move { store.delete(&path).await }) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        let (store, path) = (Arc::clone(&self.store), self.path(name)?);
        match self.wait(async move { store.head(&path).await }) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            found => found.map(|_| true),
        }
    }

    /// The store compares the version of the object, so it rejects the write if the object has
    /// since been removed or replaced.
    fn replace(&self, name: &str, contents: &[u8]) -> io::Result<bool> {
        let (store, path, contents) =
            (Arc::clone(&self.store), self.path(name)?, contents.to_vec());
        self.wait(async move {
            let found = match store.head(&path).await {
                Err(StoreError::NotFound { .. }) => return Ok(false),
                found => found?,
            };
            let version = UpdateVersion { e_tag: found.e_tag, version: found.version };
            let update = PutMode::Update(version).into();
            match store.put_opts(&path, contents.clone().into(), update).await {
                Err(StoreError::Precondition { .. } | StoreError::NotFound { .. }) => Ok(false),
                // A store without conditional writes.
                Err(StoreError::NotImplemented { .. }) => {
                    store.put(&path, contents.into()).await.map(|_| true)
                }
                stored => stored.map(|_| true),
            }
        })
    }
}

impl Bucket {
    /// Begins a request.
    fn begin<T: Send + 'static>(
        &self,
        request: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Pending<T> {
        let (sender, receiver) = sync_channel(1);
        if let Some(runtime) = &self.threads.0 {
            runtime.spawn(async move {
                // The reader of the request may have been dropped.
                let _ = sender.send(request.await);
            });
        }
        Pending(receiver)
    }

    /// Makes a request.
    fn wait<T: Send + 'static>(
        &self,
        request: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        self.begin(request).wait()
    }
}

/// A running request.
struct Pending<T>(Receiver<object_store::Result<T>>);

impl<T> Pending<T> {
    fn wait(self) -> io::Result<T> {
        let answer = self.0.recv();
        answer.map_err(|_| io::Error::other("the request ended without an answer"))?.map_err(failed)
    }
}

fn failed(error: StoreError) -> io::Error {
    let kind = match error {
        StoreError::NotFound { .. } => io::ErrorKind::NotFound,
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// The threads that make requests.
struct Threads(Option<Runtime>);

impl Threads {
    fn start() -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(THREADS).thread_name("terrane-bucket").enable_all();
        builder.build().map(|runtime| Self(Some(runtime)))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Threads of an asynchronous runtime must not wait for these threads.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use object_store::local::LocalFileSystem;
    use object_store::memory::InMemory;

    use super::*;

    fn all(repository: &dyn Repository, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        repository.get(name)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn names(repository: &dyn Repository, folder: &str) -> Vec<String> {
        let mut names: Vec<String> =
            repository.list(folder).unwrap().into_iter().map(|stored| stored.name).collect();
        names.sort();
        names
    }

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| ((at * 31) >> 3) as u8).collect()
    }

    /// The guarantees of every repository.
    fn is_a_repository(repository: &dyn Repository) {
        let piece = PIECE_BYTES;
        let contents = bytes(2 * piece + 17);
        for length in [0, 1, piece - 1, piece, piece + 1, contents.len()] {
            let contents = &contents[..length];
            let object = ContentId::of(contents).object();
            // An object's name states its size; the other name does not.
            for name in [object.as_str(), "backups/one.json"] {
                repository.put(name, &mut &*contents).unwrap();
                assert!(all(repository, name).unwrap() == contents, "{length} bytes of {name}");
                assert!(repository.exists(name).unwrap());
                let found = repository.list(&name[..name.rfind('/').unwrap() + 1]).unwrap();
                let expected = Stored { name: name.to_owned(), bytes: length as u64 };
                assert_eq!(found, [expected]);
            }
            repository.delete(&object).unwrap();
            assert!(!repository.exists(&object).unwrap());
            let missing = all(repository, &object).unwrap_err();
            assert_eq!(missing.kind(), io::ErrorKind::NotFound);
            // Removing an object again is not an error.
            repository.delete(&object).unwrap();
        }
        assert_eq!(names(repository, ""), ["backups/one.json"]);
        assert!(names(repository, "locks/").is_empty());
        assert!(!repository.replace("locks/x", b"new").unwrap());
        assert!(names(repository, "locks/").is_empty());
        assert!(repository.replace("backups/one.json", b"new").unwrap());
        assert_eq!(all(repository, "backups/one.json").unwrap(), b"new");
    }

    #[test]
    fn stores_in_memory_and_in_files_are_repositories() {
        let dir = tempfile::tempdir().unwrap();
        let local = LocalFileSystem::new_with_prefix(dir.path()).unwrap();
        is_a_repository(&Bucket::new(Arc::new(local), "one/two", "x").unwrap());
        is_a_repository(&Bucket::new(Arc::new(InMemory::new()), "", "x").unwrap());
        is_a_repository(&crate::Memory::new());
        is_a_repository(&crate::Directory::new(dir.path().join("directory")));
    }

    #[test]
    fn prefixes_separate_repositories() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let bucket = |prefix| Bucket::new(Arc::clone(&store), prefix, prefix).unwrap();
        let [one, two, whole] = ["one", "one-two", ""].map(bucket);
        one.put("a", &mut &b"1"[..]).unwrap();
        two.put("b", &mut &b"2"[..]).unwrap();
        assert_eq!(names(&one, ""), ["a"]);
        assert_eq!(names(&two, ""), ["b"]);
        assert_eq!(names(&whole, ""), ["one-two/b", "one/a"]);
    }

    #[test]
    fn an_object_that_was_replaced_while_it_is_read_is_an_error() {
        let bucket = Bucket::new(Arc::new(InMemory::new()), "", "x").unwrap();
        let length = 3 * PIECE_BYTES;
        bucket.put("a", &mut &bytes(length)[..]).unwrap();
        let mut reader = bucket.get("a").unwrap();
        bucket.put("a", &mut &vec![0; length][..]).unwrap();
        // The second piece may already have been read.
        assert!(reader.read_to_end(&mut Vec::new()).is_err());
    }

    #[test]
    fn a_bucket_may_be_used_and_dropped_on_threads_of_a_runtime() {
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let used = runtime.spawn(async {
            let bucket = Bucket::new(Arc::new(InMemory::new()), "", "x").unwrap();
            bucket.put("a", &mut &b"1"[..]).unwrap();
            all(&bucket, "a").unwrap()
        });
        let done = runtime.block_on(used).unwrap();
        assert_eq!(done, b"1");
    }
}
