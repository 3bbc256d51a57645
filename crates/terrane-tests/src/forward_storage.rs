//! Test storages that change a few calls of another storage.

/// Forwards the named methods of `Storage` to `self.inner`.
#[macro_export]
macro_rules! forward_storage {
    ($($method:ident)*) => { $($crate::forward_storage!(@$method);)* };
    (@create_dir_all) => {
        fn create_dir_all(&self, dir: &std::path::Path) -> std::io::Result<()> {
            self.inner.create_dir_all(dir)
        }
    };
    (@list) => {
        fn list(&self, dir: &std::path::Path) -> std::io::Result<Vec<String>> {
            self.inner.list(dir)
        }
    };
    (@len) => {
        fn len(&self, path: &std::path::Path) -> std::io::Result<u64> {
            self.inner.len(path)
        }
    };
    (@create) => {
        fn create(
            &self,
            path: &std::path::Path,
            access: terrane::storage::Access,
        ) -> std::io::Result<Box<dyn terrane::storage::Appender>> {
            self.inner.create(path, access)
        }
    };
    (@open) => {
        fn open(
            &self,
            path: &std::path::Path,
            access: terrane::storage::Access,
        ) -> std::io::Result<std::sync::Arc<dyn terrane::storage::RandomReader>> {
            self.inner.open(path, access)
        }
    };
    (@create_segment) => {
        fn create_segment(
            &self,
            path: &std::path::Path,
            len: u64,
        ) -> std::io::Result<Box<dyn terrane::storage::Segment>> {
            self.inner.create_segment(path, len)
        }
    };
    (@open_segment) => {
        fn open_segment(
            &self,
            path: &std::path::Path,
        ) -> std::io::Result<Box<dyn terrane::storage::Segment>> {
            self.inner.open_segment(path)
        }
    };
    (@rename) => {
        fn rename(&self, from: &std::path::Path, to: &std::path::Path) -> std::io::Result<()> {
            self.inner.rename(from, to)
        }
    };
    (@hard_link) => {
        fn hard_link(&self, from: &std::path::Path, to: &std::path::Path) -> std::io::Result<()> {
            self.inner.hard_link(from, to)
        }
    };
    (@remove) => {
        fn remove(&self, path: &std::path::Path) -> std::io::Result<()> {
            self.inner.remove(path)
        }
    };
    (@sync_dir) => {
        fn sync_dir(&self, dir: &std::path::Path) -> std::io::Result<()> {
            self.inner.sync_dir(dir)
        }
    };
    (@lock) => {
        fn lock(
            &self,
            path: &std::path::Path,
        ) -> std::io::Result<Box<dyn terrane::storage::Lock>> {
            self.inner.lock(path)
        }
    };
    (@boot_id) => {
        fn boot_id(&self) -> Option<u128> {
            self.inner.boot_id()
        }
    };
    (@entropy) => {
        fn entropy(&self) -> u64 {
            self.inner.entropy()
        }
    };
}
