//! The drill: backups of a database under load, and restores, each killed in the middle, continued, and
//! compared with a model.
//!
//! The test runs itself as the children. The writer writes numbered keys and prints the number of each
//! acknowledged one; like a server with a control socket, it makes checkpoints on request.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use terrane::{Db, Design, Options, WriteBatch};
use terrane_backup::{
    CheckpointWith, CreateOptions, Directory, PruneOptions, Repository, RestoreOptions, Retention,
    VerifyOptions, Which, create, list, prune, restore, verify,
};
use terrane_testkit::{HANG_LIMIT, Rng, print_counts, seed_from_env};

const DIR_VARIABLE: &str = "TERRANE_BACKUP_DRILL";

fn design() -> Design {
    "balanced L0=2 base=64KiB; buffer=32KiB; table=32KiB; block=512; values=separate(256,file=32KiB)"
        .parse()
        .unwrap()
}

/// The number of keys, which are written round-robin.
const KEYS: u64 = 3000;

fn key(number: u64) -> [u8; 8] {
    (number % KEYS).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn value(number: u64) -> Vec<u8> {
    let mut rng = Rng::new(number);
    (0..1 + number % 60).flat_map(|_| rng.bits().to_be_bytes()).collect()
}

/// The paths of the drill in its directory.
struct Drill(PathBuf);

impl Drill {
    fn db(&self) -> PathBuf {
        self.0.join("db")
    }

    fn repository(&self) -> Directory {
        Directory::new(self.0.join("repository"))
    }

    fn restored(&self) -> PathBuf {
        self.0.join("restored")
    }

    fn pace(&self) -> PathBuf {
        self.0.join("pace")
    }

    fn child(&self, name: &str) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(DIR_VARIABLE, &self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap()
    }

    /// Asks the writer for a checkpoint through files, and waits for it.
    fn checkpoint(&self, target: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let request = self.0.join(format!("request-{}", std::process::id()));
        let answer = request.with_extension("answer");
        std::fs::write(request.with_extension("new"), target.to_str().unwrap())?;
        std::fs::rename(request.with_extension("new"), &request)?;
        let begun = Instant::now();
        loop {
            if let Ok(text) = std::fs::read_to_string(&answer) {
                std::fs::remove_file(answer)?;
                return if text == "ok" { Ok(()) } else { Err(text.into()) };
            }
            if begun.elapsed() > HANG_LIMIT {
                return Err("no answer".into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns the pending requests, with the directories that they name.
    fn requests(&self) -> Vec<(PathBuf, PathBuf)> {
        let entries = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        let is_request = |path: &PathBuf| {
            path.extension().is_none() && path.to_str().unwrap().contains("/request-")
        };
        let requests = entries.filter(is_request);
        requests.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap().into())).collect()
    }
}

fn drill() -> Option<Drill> {
    std::env::var_os(DIR_VARIABLE).map(|dir| Drill(dir.into()))
}

/// Writes until it is killed, and answers requests.
#[test]
fn child_writes() {
    let Some(drill) = drill() else { return };
    let db = Options::new().design(design()).log_segment_bytes(128 << 10).open(drill.db()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1.. {
                let mut batch = WriteBatch::new();
                batch.put(key(number), value(number));
                batch.put("last", number.to_be_bytes());
                db.write(&batch).unwrap();
                std::io::stdout().write_all(format!("{number}\n").as_bytes()).unwrap();
            }
        });
        loop {
            for (request, target) in drill.requests() {
                std::fs::remove_file(&request).unwrap();
                let made = db.checkpoint(target);
                let text = made.map_or_else(|error| error.to_string(), |()| "ok".into());
                let new = request.with_extension("written");
                std::fs::write(&new, text).unwrap();
                std::fs::rename(new, request.with_extension("answer")).unwrap();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    });
}

/// Creates a backup, slowly if the parent requests it, and prints its name.
#[test]
fn child_creates() {
    let Some(drill) = drill() else { return };
    let source = CheckpointWith::new(drill.db(), |target| drill.checkpoint(target));
    let mut options = CreateOptions::new();
    if let Ok(rate) = std::fs::read_to_string(drill.pace()) {
        options = options.rate(rate.parse().unwrap());
    }
    let created = create(&source, &drill.repository(), &options).unwrap();
    println!("\ncreated {}", created.backup.name);
}

/// Restores the newest backup, slowly.
#[test]
fn child_restores() {
    let Some(drill) = drill() else { return };
    let options = RestoreOptions::new().rate(1 << 20);
    restore(&drill.repository(), &Which::Latest, drill.restored(), &options).unwrap();
}

/// Waits for a child to end, and kills it after the given time.
fn run_and_kill(mut child: Child, lives: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < lives {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    true
}

/// Returns the last number in a database, and checks that it has every write up to this number.
fn check(dir: &Path, story: &str) -> u64 {
    let db = Db::open(dir).unwrap();
    let Some(last) = db.get("last").unwrap() else {
        assert!(db.is_empty().unwrap(), "{story}");
        return 0;
    };
    let last = u64::from_be_bytes(last[..].try_into().unwrap());
    let oldest = last.saturating_sub(KEYS - 1).max(1);
    for number in oldest..=last {
        let found = db.get(key(number)).unwrap();
        assert_eq!(found.as_deref(), Some(&value(number)[..]), "{number} of {last}, {story}");
    }
    assert_eq!(db.iter().unwrap().count() as u64, last - oldest + 2, "{story}");
    last
}

#[test]
fn backups_and_restores_survive_being_killed() {
    let seed = seed_from_env(7000);
    let mut rng = Rng::new(seed);
    let dir = tempfile::tempdir().unwrap();
    let drill = Drill(dir.path().to_owned());
    let acknowledged = AtomicU64::new(0);
    let mut writer = drill.child("child_writes");
    let lines = BufReader::new(writer.stdout.take().unwrap());
    let mut counts = [0; 3];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for line in lines.lines().map_while(Result::ok) {
                if let Some(Ok(number)) = line.rsplit(' ').next().map(str::parse) {
                    acknowledged.store(number, Ordering::Relaxed);
                }
            }
        });
        while acknowledged.load(Ordering::Relaxed) < KEYS {
            std::thread::sleep(Duration::from_millis(1));
        }
        for round in 0..3 {
            let story = format!("round {round}, seed {seed}");
            counts[0] += kill_creates(&drill, &mut rng, &story);
            let before = acknowledged.load(Ordering::Relaxed);
            let ended = drill.child("child_creates").wait_with_output().unwrap();
            let after = acknowledged.load(Ordering::Relaxed);
            let text = String::from_utf8(ended.stdout).unwrap();
            assert!(ended.status.success(), "{story}: {text}");
            let name = text.lines().find_map(|line| line.strip_prefix("created ")).unwrap();
            let newest = list(&drill.repository()).unwrap().backups.pop().unwrap().name;
            assert_eq!(newest, name);
            counts[1] += kill_restores(&drill, &mut rng);
            let options = RestoreOptions::new().verify();
            let restored =
                restore(&drill.repository(), &Which::Latest, drill.restored(), &options).unwrap();
            assert!(restored.verification.unwrap().problems.is_empty(), "{story}");
            counts[2] += u64::from(restored.kept_bytes > 0);
            let last = check(&drill.restored(), &story);
            // A write may be visible before its number is read here.
            assert!(before <= last && last <= after + 1000, "{before} {last} {after}, {story}");
            std::fs::remove_dir_all(drill.restored()).unwrap();
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
    });
    // The next processes have removed everything that killed processes left.
    let pruned = prune(&drill.repository(), &PruneOptions::new(Retention::last(1))).unwrap();
    assert!(!pruned.removed.is_empty());
    let found = verify(&drill.repository(), &VerifyOptions::new()).unwrap();
    assert!(found.is_intact() && found.unreferenced_objects == 0, "{found:?}");
    assert!(drill.repository().list("locks/").unwrap().is_empty());
    let names = std::fs::read_dir(&drill.0).unwrap().map(|entry| entry.unwrap().file_name());
    // The writer may have made a checkpoint for a killed backup after the next one removed its directory;
    // such a directory has no lock, and is removed when it is old.
    let left: Vec<_> = names
        .filter(|name| name.to_str().unwrap().starts_with("db.backup-"))
        .filter(|name| drill.0.join(name).join("lock").exists())
        .collect();
    assert!(left.is_empty(), "{left:?}");
    print_counts(&[("killed_backups", counts[0]), ("killed_restores", counts[1])]);
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}, seed {seed}");
}

/// Kills backups, and checks that no killed backup is listed.
fn kill_creates(drill: &Drill, rng: &mut Rng, story: &str) -> u64 {
    let repository = drill.repository();
    std::fs::write(drill.pace(), (1 << 20).to_string()).unwrap();
    let mut kills = 0;
    for _ in 0..3 {
        let count = || list(&repository).map_or(0, |found| found.backups.len());
        let before = count();
        let lives = Duration::from_millis(rng.between(20, 500));
        let is_killed = run_and_kill(drill.child("child_creates"), lives);
        kills += u64::from(is_killed);
        // The process may have been killed after its last step.
        assert!(count() <= before + 1, "{story}");
        if !repository.list("").unwrap().is_empty() {
            let found = verify(&repository, &VerifyOptions::new()).unwrap();
            assert!(found.is_intact(), "{story}: {found:?}");
        }
    }
    std::fs::remove_file(drill.pace()).unwrap();
    kills
}

/// Kills restores, and checks that the engine refuses the unfinished directories.
fn kill_restores(drill: &Drill, rng: &mut Rng) -> u64 {
    let mut kills = 0;
    for _ in 0..3 {
        let lives = Duration::from_millis(rng.between(20, 400));
        kills += u64::from(run_and_kill(drill.child("child_restores"), lives));
        let opened = Db::open_read_only(drill.restored());
        if let Err(error) = opened {
            let kind = error.kind();
            let is_refused = matches!(kind, terrane::ErrorKind::Invalid | terrane::ErrorKind::Io);
            assert!(is_refused, "{error}");
        }
    }
    kills
}

/// The operations accept callbacks from any thread.
#[test]
fn progress_is_reported_to_other_threads() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    db.put("key", "value").unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let options = CreateOptions::new().on_progress(move |progress| {
        let _ = tell.send(progress);
        ControlFlow::Continue(())
    });
    create(&db, &Directory::new(dir.path().join("repository")), &options).unwrap();
    drop(options);
    let last = told.iter().last().unwrap();
    assert_eq!(last.done_files, last.total_files);
}
