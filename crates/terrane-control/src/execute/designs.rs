//! Forecasts and changes of designs.

use terrane::{Db, Design, ErrorKind, JobView, Keyspace, Maintenance};

use super::long;
use crate::failure::Failure;
use crate::protocol::{DesignForecast, Item, Progress, Reply};
use crate::watch::{Interest, Watch};

/// Returns the design with this text, or the one before the last change.
fn wanted(keyspace: &Keyspace, text: Option<&str>) -> Result<Design, Failure> {
    match text {
        Some(text) => text.parse().map_err(|error| Failure::from(terrane::Error::from(error))),
        None => keyspace.design_before().ok_or_else(|| {
            let name = keyspace.name();
            let text = format!("nothing to undo: keyspace '{name}' never had another design");
            Failure::invalid(text)
        }),
    }
}

pub(super) fn forecast(keyspace: &Keyspace, design: Option<&str>) -> Result<Reply, Failure> {
    let design = wanted(keyspace, design)?;
    Ok(Reply::Forecast(Box::new(DesignForecast {
        design_before: keyspace.design().to_string(),
        design: design.to_string(),
        forecast: keyspace.forecast(&design)?,
    })))
}

pub(super) fn set(
    db: &Db,
    keyspace: &Keyspace,
    design: Option<&str>,
    converge: bool,
    watch: &mut dyn Watch,
) -> Result<Reply, Failure> {
    let (design, before) = (wanted(keyspace, design)?, keyspace.design());
    let total_bytes = keyspace.forecast(&design)?.bytes_rewritten;
    keyspace.set_design(design.clone())?;
    let design = design.to_string();
    if !converge {
        return Ok(Reply::DesignSet { design, is_cancelled: false });
    }
    let maintenance = Maintenance::of(db);
    // Values that move between value files and tables are not in the tables that compactions read.
    let moved = || {
        let stats = db.stats();
        stats.compaction_bytes_read.max(stats.compaction_bytes_written)
    };
    let begun = moved();
    let mut watch =
        Rewriting { watch, done: &|| moved() - begun, total_bytes, is_cancelled: false };
    let waited =
        long::run(&maintenance, "rewriting", &mut watch, Maintenance::wait_for_compactions);
    let is_cancelled = watch.is_cancelled;
    match waited {
        Err(failure) if failure.kind() == Some(ErrorKind::Cancelled) && is_cancelled => {
            keyspace.set_design(before)?;
            Ok(Reply::DesignSet { design, is_cancelled: true })
        }
        other => other.map(|()| Reply::DesignSet { design, is_cancelled: false }),
    }
}

/// Counts the bytes that compactions have rewritten.
struct Rewriting<'a> {
    watch: &'a mut dyn Watch,
    done: &'a dyn Fn() -> u64,
    total_bytes: u64,
    /// Whether the client has cancelled the wait. If the client disappears, the new design stays.
    is_cancelled: bool,
}

impl Watch for Rewriting<'_> {
    fn item(&mut self, item: Item) {
        self.watch.item(item);
    }

    fn progress(&mut self, progress: &Progress) {
        let read = |job: &JobView| Some(job.total_bytes.saturating_sub(job.remaining_bytes?));
        let running = progress.jobs.iter().filter_map(read).sum::<u64>();
        // The output of a running job is counted when the job ends.
        let done_bytes = (self.done)().max(running).min(self.total_bytes);
        let (total_bytes, progress) = (self.total_bytes, progress.clone());
        self.watch.progress(&Progress { done_bytes, total_bytes, ..progress });
    }

    fn interest(&mut self) -> Interest {
        let interest = self.watch.interest();
        self.is_cancelled |= interest == Interest::Cancelled;
        interest
    }
}
