//! Damage: in the database, in objects, and in manifests.

use std::io;

use terrane_backup::{
    CreateOptions, Directory, Error, Memory, ReadBack, Repository, RestoreOptions, VerifyOptions,
    Which, create, list, restore, verify,
};

use crate::support::{back_up, contents, fill, open, read, restored};

fn flip(repository: &Memory, name: &str, at: usize) {
    let mut bytes = read(repository, name);
    bytes[at] ^= 0x10;
    repository.put(name, &mut &bytes[..]).unwrap();
}

/// Damages each object in turn: changes a byte, cuts off the last byte, or removes the object.
#[test]
fn damage_of_each_object_is_found_and_named_with_the_backups() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let repository = Memory::new();
    fill(&db, 0..300, 1);
    db.flush().unwrap();
    let first = back_up(&db, &repository).backup;
    fill(&db, 300..400, 1);
    db.flush().unwrap();
    let second = back_up(&db, &repository).backup;
    let intact = verify(&repository, &VerifyOptions::new()).unwrap();
    assert!(intact.is_intact() && intact.unreferenced_objects == 0, "{intact:?}");
    assert_eq!(intact.backups, 2);
    let objects = repository.list("objects/").unwrap();
    assert_eq!(intact.objects, objects.len() as u64);
    let mut shared = 0;
    for (index, stored) in objects.iter().enumerate() {
        let name = &stored.name;
        let before = read(&repository, name);
        match index % 3 {
            0 => flip(&repository, name, index % before.len()),
            1 => repository.put(name, &mut &before[..before.len() - 1]).unwrap(),
            _ => repository.delete(name).unwrap(),
        }
        let found = verify(&repository, &VerifyOptions::new()).unwrap();
        assert!(found.damaged.len() == 1 && !found.is_intact(), "{found:?}");
        let damaged = &found.damaged[0];
        assert_eq!(damaged.object, *name);
        let affected: Vec<String> = [&first, &second]
            .into_iter()
            .filter(|backup| backup.files.iter().any(|file| file.object() == *name))
            .map(|backup| backup.name.clone())
            .collect();
        assert_eq!(damaged.backups, affected);
        shared += usize::from(affected.len() == 2);
        assert!(!damaged.files.is_empty());
        for backup in [&first, &second] {
            let is_affected = affected.contains(&backup.name);
            let one = verify(&repository, &VerifyOptions::new().backup(&backup.name)).unwrap();
            assert_eq!(one.is_intact(), !is_affected);
            let target = dir.path().join("restored");
            let which = Which::Named(backup.name.clone());
            let made = restore(&repository, &which, &target, &RestoreOptions::new());
            match made {
                Ok(_) => assert!(!is_affected),
                Err(error) => {
                    assert!(is_affected && error.is_damage(), "{error}");
                    assert!(error.to_string().contains(name), "{error}");
                    // The directory is not a database.
                    let opened = terrane::Db::open(&target).unwrap_err();
                    assert_eq!(opened.kind(), terrane::ErrorKind::Invalid, "{opened}");
                }
            }
            std::fs::remove_dir_all(target).unwrap();
        }
        repository.put(name, &mut &before[..]).unwrap();
    }
    assert!(shared > 0);
}

#[test]
fn a_damaged_manifest_is_named_and_hides_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let repository = Memory::new();
    fill(&db, 0..100, 1);
    let first = back_up(&db, &repository).backup;
    let second = back_up(&db, &repository).backup;
    flip(&repository, &second.object(), 100);
    let found = list(&repository).unwrap();
    assert_eq!(found.backups, std::slice::from_ref(&first));
    assert_eq!(found.unreadable[0].0, second.object());
    let verified = verify(&repository, &VerifyOptions::new()).unwrap();
    assert!(!verified.is_intact() && verified.unreadable[0].0 == second.object());
    let which = Which::Named(second.name.clone());
    let target = dir.path().join("restored");
    let refused = restore(&repository, &which, &target, &RestoreOptions::new()).unwrap_err();
    assert!(refused.to_string().contains("its checksum does not match"), "{refused}");
    assert_eq!(restored(&repository, &Which::Latest, &target), contents(&db));
    // Asking for the newest backup shows that a newer one may exist.
    for (which, count) in [
        (Which::Latest, 1),
        (Which::At(second.time_micros), 1),
        (Which::At(second.time_micros - 1), 0),
        (Which::Named(first.name.clone()), 0),
    ] {
        std::fs::remove_dir_all(&target).unwrap();
        let made = restore(&repository, &which, &target, &RestoreOptions::new()).unwrap();
        assert_eq!((made.skipped.len(), made.backup.name), (count, first.name.clone()));
    }
    // The next backup uses the objects of the first one.
    assert!(back_up(&db, &repository).stored_bytes < first.bytes);
}

#[test]
fn a_damaged_table_of_the_database_is_found_when_it_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..500, 1);
    db.flush().unwrap();
    let repository = Memory::new();
    let first = back_up(&db, &repository);
    fill(&db, 500..600, 1);
    db.flush().unwrap();
    let files = terrane::inspect::files(db.path()).unwrap().files;
    let is_in_first = |name: &str| first.backup.files.iter().any(|file| file.name == name);
    let tables = files.iter().filter(|file| file.checksum.is_some());
    let (old, new): (Vec<_>, Vec<_>) = tables.partition(|file| is_in_first(&file.name));
    let path = db.path().join(&new[0].name);
    let intact = std::fs::read(&path).unwrap();
    let mut bytes = intact.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let refused = create(&db, &repository, &CreateOptions::new()).unwrap_err();
    assert!(refused.is_damage() && refused.to_string().contains(&new[0].name), "{refused}");
    assert_eq!(list(&repository).unwrap().backups.len(), 1);
    std::fs::write(&path, &intact).unwrap();
    // A file that the repository has is not read, unless the caller requests it.
    let path = db.path().join(&old[0].name);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[9] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let refused = create(&db, &repository, &CreateOptions::new().reread()).unwrap_err();
    assert!(refused.is_damage() && refused.to_string().contains(&old[0].name), "{refused}");
    create(&db, &repository, &CreateOptions::new()).unwrap();
    let healthy = restored(&repository, &Which::Latest, &dir.path().join("restored"));
    assert_eq!(healthy[0].len(), 600);
}

#[test]
fn a_backup_that_reads_everything_back_replaces_damaged_objects() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..500, 1);
    db.flush().unwrap();
    let repository = Memory::new();
    let first = back_up(&db, &repository).backup;
    let tables: Vec<_> = first.files.iter().filter(|file| file.xxh3.is_some()).collect();
    flip(&repository, &tables[0].object(), 7);
    repository.delete(&tables[1].object()).unwrap();
    create(&db, &repository, &CreateOptions::new().read_back(ReadBack::All)).unwrap();
    assert!(verify(&repository, &VerifyOptions::new()).unwrap().is_intact());
}

/// A repository whose device stores something else.
struct Forgetful(Memory);

impl Repository for Forgetful {
    fn location(&self) -> String {
        "forgetful".into()
    }

    fn put(&self, name: &str, contents: &mut dyn io::Read) -> io::Result<()> {
        self.0.put(name, contents)?;
        if name.starts_with("objects/") {
            flip(&self.0, name, 0);
        }
        Ok(())
    }

    fn get(&self, name: &str) -> io::Result<Box<dyn io::Read + '_>> {
        self.0.get(name)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<terrane_backup::Stored>> {
        self.0.list(folder)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.0.delete(name)
    }
}

#[test]
fn reading_back_finds_what_was_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..50, 1);
    let repository = Forgetful(Memory::new());
    let options = CreateOptions::new().read_back(ReadBack::New);
    let refused = create(&db, &repository, &options).unwrap_err();
    assert!(refused.to_string().contains("read back with other contents"), "{refused}");
    assert!(list(&repository).unwrap().backups.is_empty());
}

#[test]
fn other_places_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let precious = dir.path().join("precious");
    std::fs::create_dir(&precious).unwrap();
    std::fs::write(precious.join("photo.jpg"), "x").unwrap();
    let refused = create(&db, &Directory::new(&precious), &CreateOptions::new()).unwrap_err();
    assert!(matches!(refused, Error::NotRepository { .. }), "{refused}");
    let refused = list(&Directory::new(dir.path().join("none"))).unwrap_err();
    assert!(refused.to_string().contains("no backup repository"), "{refused}");
    let newer = Memory::new();
    let mark = br#"{"format":"terrane-backup","schema":2}"#;
    newer.put("repository.json", &mut &mark[..]).unwrap();
    let refused = create(&db, &newer, &CreateOptions::new()).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { found: 2, .. }), "{refused}");
}

/// A repository that changes a file of the checkpoint after it was hashed, and before it is stored.
struct Changing {
    inner: Memory,
    beside: std::path::PathBuf,
}

impl Changing {
    fn change(&self) -> io::Result<()> {
        let is_staging = |path: &std::path::PathBuf| path.to_str().unwrap().contains("/db.backup-");
        let entries = std::fs::read_dir(&self.beside)?.map(|entry| entry.unwrap().path());
        let staging = entries.into_iter().find(is_staging).unwrap();
        for entry in std::fs::read_dir(staging.join("checkpoint"))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "sst") {
                let file = std::fs::File::options().write(true).open(path)?;
                std::os::unix::fs::FileExt::write_all_at(&file, b"changed", 100)?;
            }
        }
        Ok(())
    }
}

impl Repository for Changing {
    fn location(&self) -> String {
        "changing".into()
    }

    fn put(&self, name: &str, contents: &mut dyn io::Read) -> io::Result<()> {
        if name.starts_with("objects/") {
            self.change()?;
        }
        self.inner.put(name, contents)
    }

    fn get(&self, name: &str) -> io::Result<Box<dyn io::Read + '_>> {
        self.inner.get(name)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<terrane_backup::Stored>> {
        self.inner.list(folder)
    }

    /// A killed process removes nothing.
    fn delete(&self, name: &str) -> io::Result<()> {
        if name.starts_with("locks/") { self.inner.delete(name) } else { Ok(()) }
    }
}

/// The changed contents were stored under the name of the original ones, and removed only if the
/// process lived long enough. Later backups would have used the object, because its size matches.
#[cfg(unix)]
#[test]
fn a_file_that_changes_between_its_two_readings_is_never_stored() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..300, 1);
    db.flush().unwrap();
    let inner = Memory::new();
    let repository = Changing { inner: inner.clone(), beside: dir.path().to_owned() };
    let error = create(&db, &repository, &CreateOptions::new()).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("read again"), "{error}");
    for stored in inner.list("objects/").unwrap() {
        let content = terrane_backup::ContentId::of(&read(&inner, &stored.name));
        assert_eq!(content.object(), stored.name);
    }
}

/// A large file among the manifests was read into memory.
#[test]
fn what_is_too_large_for_a_manifest_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let repository = Directory::new(dir.path().join("repository"));
    let first = back_up(&db, &repository).backup;
    let huge = repository.path().join("backups/20991231T000000.000000Z-0000000000000001.json");
    std::fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
    let found = list(&repository).unwrap();
    assert_eq!(found.backups, [first]);
    let told = found.unreadable[0].1.to_string();
    assert!(told.contains("larger than any manifest"), "{told}");
}
