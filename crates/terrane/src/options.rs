//! Options: each defined once, in the table below.
//!
//! From one definition come the builder method with its documentation, the parser that the command
//! line and stored options use, the default, and [`Options::table`] for a reference page.
//!
//! Options are stored with the database. What is given when it is opened again takes the place of
//! what is stored, except for the design of a keyspace, which has a history on disk: opening with
//! another design is refused with a word on how to change it.

#[cfg(test)]
mod tests;
mod values;

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use terrane_policy::{Design, catalogue};

use crate::clock::{Clock, SystemClock};
use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::event::{Listener, LoggedEvent};
use crate::io_budget::IoBudget;
use crate::storage::{Access, DiskStorage, Storage};
use crate::table::CacheWarming;
use values::Persistence;

/// What to do about a directory with or without a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpenMode {
    /// Open the database, or make one.
    CreateIfMissing,
    /// Open the database; fail if there is none.
    MustExist,
    /// Make a database; fail if there is one.
    MustBeNew,
}

/// How tables are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadMode {
    /// In place, from memory maps. Fastest while the data fits the page cache, which it is read
    /// through; a disk that fails to read ends the process, as with any memory map.
    Mapped,
    /// By system calls through the block cache, and the page cache below it.
    Cached,
    /// By system calls through the block cache, around the page cache.
    Direct,
}

/// How writers of several threads go about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WritePath {
    /// All insert at the same time; only their order is given out one after the other.
    Concurrent,
    /// One at a time writes for all that wait, as in LevelDB.
    Queue,
}

/// How flushes and compactions write tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriteMode {
    /// Through the page cache.
    Buffered,
    /// Around the page cache. What was just written is then not in memory, unless
    /// [`Options::cache_warming`] puts it there.
    Direct,
}

impl WriteMode {
    pub(crate) fn access(self) -> Access {
        match self {
            Self::Buffered => Access::Buffered,
            Self::Direct => Access::Direct,
        }
    }
}

/// Bytes, printed with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(u64);

/// One line of the reference of options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionInfo {
    /// The name, also of the builder method and, with hyphens, of the flag.
    pub name: &'static str,
    /// What it decides.
    pub about: &'static str,
    /// The value unless another is given.
    pub default: String,
    /// Which values are accepted.
    pub accepted: &'static str,
    /// What a larger value, or the other choice, buys and costs.
    pub trade_off: &'static str,
    /// When a change takes effect.
    pub takes_effect: &'static str,
}

macro_rules! options {
    ($(
        $(#[doc = $about:literal])*
        $name:ident: $given:ty as $stored:ty = $default:expr,
        accepts $accepted:literal where $check:expr,
        trade_off $trade_off:literal,
        takes_effect $takes_effect:literal;
    )*) => {
        /// How a database is opened.
        ///
        /// ```
        /// # fn main() -> terrane::Result<()> {
        /// # let dir = tempfile::tempdir().unwrap();
        /// use terrane::{Durability, Options};
        /// let db = Options::new().durability(Durability::Sync).open(dir.path())?;
        /// db.put("key", "value")?;
        /// # Ok(())
        /// # }
        /// ```
        #[derive(Debug, Clone)]
        pub struct Options {
            $($name: Option<$stored>,)*
            pub(crate) open_mode: OpenMode,
            pub(crate) components: Components,
        }

        /// Every option with its value, after defaults and stored values were filled in.
        #[derive(Debug, Clone)]
        pub(crate) struct Settings {
            $(pub(crate) $name: $stored,)*
        }

        impl Default for Options {
            fn default() -> Self {
                Self {
                    $($name: None,)*
                    open_mode: OpenMode::CreateIfMissing,
                    components: Components::default(),
                }
            }
        }

        impl Options {
            $(
                $(#[doc = $about])*
                ///
                #[doc = concat!("Accepts ", $accepted, ".")]
                ///
                #[doc = concat!($trade_off, " Takes effect ", $takes_effect, ".")]
                #[must_use]
                pub fn $name(mut self, value: $given) -> Self {
                    self.$name = Some(<$stored>::from(value));
                    self
                }
            )*

            /// Sets an option by its name, from text.
            ///
            /// # Errors
            /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if there is no such option, or
            /// the text is not one of its values.
            pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
                match name {
                    $(stringify!($name) => {
                        self.$name = Some(parse(stringify!($name), value, $accepted)?);
                    })*
                    _ => {
                        let known = [$(stringify!($name)),*].join(", ");
                        return Err(Error::invalid("option", format!("'{name}'"), format!("one of {known}")));
                    }
                }
                Ok(())
            }

            /// What was set, as names and text.
            pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
                let mut given = Vec::new();
                $(given.extend(self.$name.as_ref().map(|value| (stringify!($name), value.to_string())));)*
                given
            }

            /// Values for all options, each checked.
            pub(crate) fn settings(&self) -> Result<Settings> {
                let settings = Settings {
                    $($name: self.$name.clone().unwrap_or_else(|| $default),)*
                };
                $({
                    let value = &settings.$name;
                    let check: fn(&$stored) -> bool = $check;
                    if !check(value) {
                        return Err(Error::invalid(stringify!($name), value.to_string(), $accepted));
                    }
                })*
                Ok(settings)
            }

            /// All options with their documentation.
            pub fn table() -> Vec<OptionInfo> {
                vec![$(OptionInfo {
                    name: stringify!($name),
                    about: concat!($($about, "\n"),*).trim_ascii(),
                    default: <$stored>::to_string(&$default),
                    accepted: $accepted,
                    trade_off: $trade_off,
                    takes_effect: $takes_effect,
                }),*]
            }
        }
    };
}

options! {
    /// The design of the default keyspace: write buffer, compaction strategy, filters. See
    /// [`Design`] for its text form.
    design: Design as Design = default_design(),
    accepts "a design such as `balanced` or `tiering T=4; filter=5`" where |design| design.validate().is_ok(),
    trade_off "Fewer runs make reads cheaper and writes dearer.",
    takes_effect "when the database is made; later by `Db::set_design`";

    /// What a write survives once the call returns, unless the write says otherwise.
    durability: Durability as Durability = Durability::Process,
    accepts "`none`, `process`, `interval(TIME)` or `sync`" where |_| true,
    trade_off "Each step survives more and costs more; see [`Durability`].",
    takes_effect "when the database is opened";

    /// A bound for write buffers, cached and pinned blocks, and the buffers of background work
    /// together, in bytes. Mapped tables belong to the page cache and do not count.
    memory_budget: u64 as Bytes = Bytes(512 << 20),
    accepts "1 MiB to 1 TiB" where |bytes| (1 << 20..=1 << 40).contains(&bytes.0),
    trade_off "More memory means larger flushes, so less rewriting, and a larger cache.",
    takes_effect "when the database is opened";

    /// How tables are read.
    read_mode: ReadMode as ReadMode = ReadMode::Mapped,
    accepts "`mapped`, `cached` or `direct`" where |_| true,
    trade_off "Mapped reads cost no copy and no cache; cached ones keep to the memory budget.",
    takes_effect "when the database is opened";

    /// How flushes and compactions write tables. With `direct` here and in `read_mode`, tables and
    /// all reads of them stay out of the page cache, as in the experiments of the compaction paper
    /// (§5); the log and the manifest, which are small and written again and again, do not. Where
    /// the file system cannot do it, tables go through the page cache all the same, and the figures
    /// of the database say for how many that was so.
    write_mode: WriteMode as WriteMode = WriteMode::Buffered,
    accepts "`buffered` or `direct`" where |_| true,
    trade_off "Direct writes leave the page cache to others, and wait for the device.",
    takes_effect "when the database is opened";

    /// How writers of several threads go about it. `queue` is LevelDB's way, in which one thread at a
    /// time writes for all that wait (FloDB paper, §2.2): to measure the other one against.
    write_path: WritePath as WritePath = WritePath::Concurrent,
    accepts "`concurrent` or `queue`" where |_| true,
    trade_off "A queue copies each write and has threads wait for each other; it is never the better choice where threads have processors.",
    takes_effect "when the database is opened";

    /// Which blocks of the tables that flushes and compactions make are put into the block cache:
    /// those of flushes, and those of compactions whose inputs' blocks were there. `meta` is for
    /// indexes and filters, `all` for data blocks as well. Mapped tables are not read through the
    /// cache, and are left alone.
    cache_warming: CacheWarming as CacheWarming = CacheWarming::None,
    accepts "`none`, `meta` or `all`" where |_| true,
    trade_off "Spares readers the first read of what a compaction has just replaced, and takes room in the cache for it; `all` pays where the cache has room for what was written last.",
    takes_effect "when the database is opened";

    /// Threads that compact. Flushes have a thread of their own.
    compaction_threads: usize as usize = default_compaction_threads(),
    accepts "1 to 64" where |count| (1..=64).contains(count),
    trade_off "More threads keep up with more writes, and take more from everyone else.",
    takes_effect "when the database is opened";

    /// Threads that one compaction has at most (Dent §2.3.4): each merges a range of keys of all its
    /// runs, of a table or more. All together there may be `compaction_threads` times as many.
    merge_threads: usize as usize = 1,
    accepts "1 to 64" where |count| (1..=64).contains(count),
    trade_off "A large compaction ends sooner, and takes more processors and memory meanwhile.",
    takes_effect "when the database is opened";

    /// Threads that search several runs at the same time for one get or for the start of one scan
    /// (Dent §2.4.2, §2.6.2); 0 has each reader search for itself. It pays where several runs must
    /// be read from a disk: with 24 runs in read mode `direct`, 4 threads start scans 2 to 3 times
    /// as fast, and make gets without filters 1.5 to 2 times as fast. Gets with filters have one
    /// run to search, and gain nothing for sure (0.9 to 1.3 times). In memory a thread would not be
    /// awake before the read is done, so while reads are quick nothing is handed over. Measured by
    /// `cargo bench -p terrane --bench parallel_reads` on two processors. Lookups of many keys at
    /// once do without.
    read_threads: usize as usize = 0,
    accepts "0 to 64" where |count| *count <= 64,
    trade_off "Helps when tables come from a slow disk; does nothing when they are in memory.",
    takes_effect "when the database is opened";

    /// How much flushes and compactions together may write in a second.
    io_budget: IoBudget as IoBudget = IoBudget::Unlimited,
    accepts "`none`, 64 KiB or more such as `100MB/s`, or `leftover(100MB/s)`" where |budget| budget.is_valid(),
    trade_off "A smaller budget leaves more of the disk to the application, and limits how much can be written in the long run.",
    takes_effect "when the database is opened, and later by `Db::set_io_budget`";

    /// How much of a table is written before it is forced to disk, in bytes, so that no sync at its
    /// end has everyone wait for the disk (performance-stability §3.1); `0B` leaves it to the end.
    sync_bytes: u64 as Bytes = Bytes(16 << 20),
    accepts "0 or 64 KiB to 1 TiB" where |bytes| bytes.0 == 0 || (64 << 10..=1 << 40).contains(&bytes.0),
    trade_off "Less at a time keeps others from waiting, and costs merges more waits of their own.",
    takes_effect "when the database is opened";

    /// The time within which the values of what was deleted, by key or by range, are gone from all
    /// files, whatever the design: tombstones then go before everything else, level by level, so that
    /// each has its share of the time (Lethe §4.1), and files of the log are removed by age. Snapshots
    /// and iterators keep what they see; what is due while the database is closed is done when it is
    /// opened.
    delete_persistence: Duration as Persistence = Persistence(None),
    accepts "`never`, or a time of at least 1s such as `10m`, `1h` or `7d`" where |time| time.0.is_none_or(|micros| micros >= 1_000_000),
    trade_off "A shorter time rewrites more (compaction paper O18), flushes smaller memtables and makes more files of the log, and leaves less of what was deleted.",
    takes_effect "when the database is opened";

    /// The length of a file of the log, in bytes.
    log_segment_bytes: u64 as Bytes = Bytes(64 << 20),
    accepts "64 KiB to 4 GiB" where |bytes| (64 << 10..=4 << 30).contains(&bytes.0),
    trade_off "Longer files are changed less often, and freed later.",
    takes_effect "with the next file";

    /// The length of the log at which memtables are flushed to shorten it, in bytes: an idle
    /// keyspace must not keep the log of a busy one, and recovery must end in time.
    log_bytes_max: u64 as Bytes = Bytes(512 << 20),
    accepts "1 MiB to 1 TiB" where |bytes| (1 << 20..=1 << 40).contains(&bytes.0),
    trade_off "A longer log means fewer small flushes, and a longer recovery.",
    takes_effect "when the database is opened";
}

fn default_design() -> Design {
    // The catalogue's own tests say that the default is there.
    catalogue::find(catalogue::DEFAULT).map_or_else(
        || Design::new(terrane_policy::Eagerness::OneLeveling),
        |entry| (entry.design)(),
    )
}

/// Half of the processors, so that the other half serves the application.
fn default_compaction_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |count| (count.get() / 2).clamp(1, 8))
}

impl Options {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// What to do about a directory with or without a database.
    #[must_use]
    pub fn open_mode(mut self, mode: OpenMode) -> Self {
        self.open_mode = mode;
        self
    }

    /// The files to work on, instead of those of the operating system.
    #[must_use]
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.components.storage = storage;
        self
    }

    /// The clock to go by, instead of that of the operating system.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.components.clock = clock;
        self
    }

    /// Who carries out flushes and compactions.
    #[must_use]
    pub fn background(mut self, background: Background) -> Self {
        self.components.background = background;
        self
    }

    /// Has `tell` called with everything that happens: flushes, compactions and why, changes of the
    /// design, stalls, trouble; see [`Event`](crate::Event).
    ///
    /// It is called in the thread of what happened, which waits for it, so it must not block, nor
    /// call the database but for [`Db::events`](crate::Db::events); two threads may call it at the
    /// same time, and not in the order of numbers. If it panics, it is not called again.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let (send, told) = std::sync::mpsc::channel();
    /// let options = terrane::Options::new().on_event(move |event| {
    ///     let _ = send.send(event.clone());
    /// });
    /// let db = options.open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// println!("{}", told.recv().unwrap().event);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_event(mut self, tell: impl Fn(&LoggedEvent) + Send + Sync + 'static) -> Self {
        self.components.listener = Some(Listener::new(tell));
        self
    }

    /// The design that was asked for, if any.
    pub(crate) fn given_design(&self) -> Option<&Design> {
        self.design.as_ref()
    }

    /// Values that are given here, and stored ones for the rest.
    pub(crate) fn or_stored<'a>(
        &self,
        stored: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<Self> {
        let mut merged = Self { components: self.components.clone(), ..Self::default() };
        merged.open_mode = self.open_mode;
        for (name, value) in stored {
            // An option that this version does not know any more has no effect.
            let _ = merged.set(name, value);
        }
        for (name, value) in self.given() {
            merged.set(name, &value)?;
        }
        Ok(merged)
    }
}

/// Who carries out flushes and compactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Background {
    /// Threads of the database.
    Threads,
    /// The caller: a job is carried out when a write has to wait for it, when the caller asks for
    /// a flush or a compaction, or by [`Db::run_background_job`](crate::Db::run_background_job).
    /// With a seeded storage and a manual clock every run is the same.
    Inline,
}

/// What a database works with, as opposed to how.
#[derive(Debug, Clone)]
pub(crate) struct Components {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) background: Background,
    pub(crate) listener: Option<Listener>,
}

impl Default for Components {
    fn default() -> Self {
        Self {
            storage: Arc::new(DiskStorage),
            clock: Arc::new(SystemClock),
            background: Background::Threads,
            listener: None,
        }
    }
}

fn parse<T: FromStr>(name: &'static str, value: &str, accepted: &str) -> Result<T> {
    value.parse().map_err(|_| Error::invalid(name, format!("'{value}'"), accepted))
}

impl Settings {
    pub(crate) fn memory_budget_bytes(&self) -> u64 {
        self.memory_budget.0
    }

    pub(crate) fn sync_bytes(&self) -> u64 {
        self.sync_bytes.0
    }

    /// The time within which deletes are persistent, in microseconds.
    pub(crate) fn delete_persistence_micros(&self) -> Option<u64> {
        self.delete_persistence.0
    }

    /// The age at which tombstones must be gone from tables: a tenth of the time within which
    /// deletes are persistent is left for the compactions to be done.
    pub(crate) fn tombstone_age_micros(&self) -> Option<u64> {
        self.delete_persistence.0.map(|micros| micros - micros / 10)
    }

    /// The age at which a memtable is flushed for the deletes in it, likewise.
    pub(crate) fn memtable_age_micros(&self) -> Option<u64> {
        self.delete_persistence.0.map(|micros| micros / 10)
    }

    pub(crate) fn log_segment_bytes(&self) -> u64 {
        self.log_segment_bytes.0
    }

    pub(crate) fn log_bytes_max(&self) -> u64 {
        self.log_bytes_max.0
    }
}
