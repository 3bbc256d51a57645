//! Counters of visits behind tasks of tokio: `cargo run -p terrane --features async --example tokio`.
//!
//! Tasks write and read while one thread runs all of them. None of them blocks it: a timer keeps its pace
//! while the commits wait for their syncs.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use terrane::{AsyncDb, Durability, Options, WriteBatch, WriteOptions};
use tokio::time::timeout;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Stores the visits of one page, as a request handler does.
async fn visit(db: AsyncDb, page: u32) -> terrane::Result<()> {
    let mut batch = WriteBatch::new();
    for visitor in 0..10 {
        batch.put(format!("visit:{page:02}:{visitor}"), "now");
    }
    // Synced batches that run at the same time share a sync.
    db.commit(batch, WriteOptions::new().durability(Durability::Sync)).await?;
    // The function runs on a thread of the handle, again if another page's task was faster.
    db.transaction(|tx| {
        let count = tx.get("pages")?.map_or(0, |count| count.len());
        tx.put("pages", "x".repeat(count + 1));
        Ok(())
    })
    .await
}

async fn serve(dir: &Path) -> Result<()> {
    let db = AsyncDb::open(Options::new(), dir.join("db")).await?;

    let tasks: Vec<_> = (0..20).map(|page| tokio::spawn(visit(db.clone(), page))).collect();
    let mut ticks = 0;
    while !tasks.iter().all(tokio::task::JoinHandle::is_finished) {
        tokio::time::sleep(Duration::from_millis(1)).await;
        ticks += 1;
    }
    for task in tasks {
        task.await??;
    }
    println!("{ticks} ticks of a timer while {} syncs ran", db.db().stats().log_syncs);

    // A stream reads on only when it is asked for more.
    let snapshot = db.snapshot();
    let mut visits = snapshot.prefix("visit:07:");
    let mut count = 0;
    while let Some((key, _)) = visits.next().await.transpose()? {
        println!("{}", key.escape_ascii());
        count += 1;
    }
    assert_eq!(count, 10);

    // A read may be given up at any time. A write that was given up may still happen.
    let pages = timeout(Duration::from_secs(10), db.get("pages")).await??;
    assert_eq!(pages.unwrap().len(), 20);

    drop((visits, snapshot));
    // Flushes, and reports errors that a drop cannot report.
    db.close().await?;
    Ok(())
}

pub(crate) fn run(dir: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(serve(dir))
}

/// Runs the example in a directory that is removed afterwards.
fn main() -> Result<()> {
    run(tempfile::tempdir()?.path())
}
