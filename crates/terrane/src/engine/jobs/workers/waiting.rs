//! Waits for jobs to be done; without threads, whoever waits does them.

use crate::engine::context::health::Trouble;
use crate::engine::tree::TreeJobs;
use crate::engine::{Engine, JobKind, Tree};
use crate::error::{Error, Result};

impl Engine {
    /// Does one job that is waiting to be done; false if there is none.
    pub(crate) fn run_one_job(&self) -> Result<bool> {
        let done = self.do_one_job();
        // Threads, if there are any, may have something to do after it.
        self.work.tell_done();
        match done {
            // The tree is gone; the database goes on.
            Err(Error::Closed) if self.health.check_open().is_ok() => Ok(true),
            other => other,
        }
    }

    fn do_one_job(&self) -> Result<bool> {
        let _helping = self.work.help();
        self.health.check_open()?;
        self.make_spare();
        self.remove_again();
        self.rotate_aged();
        if let Some(tree) = self.find_flush() {
            return self.flush_found(&tree).map(|()| true);
        }
        if let Some((tree, tables)) = self.find_drop() {
            return self.drop_tables(&tree, &tables).map(|()| true);
        }
        let Some((tree, compaction, pass)) = self.find_compaction() else {
            self.trees().values().for_each(|tree| self.tell_late_deletes(tree));
            return Ok(false);
        };
        match self.compact(&tree, &compaction, pass) {
            // The tables are left alone from now on, and the tree says why; the rest goes on.
            Err(Error::Corruption(_)) => Ok(true),
            other => other.map(|()| true),
        }
    }

    /// Whether another thread is carrying out a job.
    pub(crate) fn is_working(&self) -> bool {
        self.trees().values().any(|tree| {
            let jobs = tree.jobs();
            jobs.is_flushing || !jobs.compactions.is_empty() || !jobs.dropping.is_empty()
        })
    }

    /// Waits, or works where background work is inline, until `is_done`.
    ///
    /// # Errors
    /// There was no room on the disk for work of these kinds, since the wait began.
    pub(crate) fn work_until(
        &self,
        kinds: &[JobKind],
        is_done: impl Fn() -> Result<bool>,
    ) -> Result<()> {
        let before = self.health.failures();
        while !is_done()? {
            self.health.check_writable()?;
            let mut troubles = kinds.iter().filter_map(|kind| self.health.trouble(*kind));
            let full = troubles.find_map(|trouble| match trouble {
                Trouble { error: error @ Error::DiskFull(_), number } if number > before => {
                    Some(error)
                }
                _ => None,
            });
            if let Some(error) = full {
                return Err(error);
            }
            self.work_a_little()?;
        }
        Ok(())
    }

    /// Waits for a job to be done, or does one.
    pub(crate) fn work_a_little(&self) -> Result<()> {
        if self.is_inline() {
            self.run_one_job()?;
        } else {
            self.work.wake();
            self.work.rest();
        }
        Ok(())
    }

    /// Returns once there is nothing left to flush, to drop or to compact.
    ///
    /// # Errors
    /// What is left cannot be done, as a table cannot be read.
    pub(crate) fn wait_for_compactions(&self) -> Result<()> {
        self.work_until(&[JobKind::Flush, JobKind::Drop, JobKind::Compaction], || {
            let trees = self.trees();
            let mut damage = None;
            for tree in trees.values() {
                let jobs = self.lock_jobs_with_covered(tree);
                if !self.is_quiet(tree, &jobs)
                    || self.has_aged(tree)
                    || self.next_compaction(tree, &jobs).is_some()
                {
                    return Ok(false);
                }
                let wanted = self.wanted_compaction(tree, &jobs);
                damage = damage.or_else(|| jobs.damage_to(&wanted?));
            }
            damage.map_or(Ok(true), Err)
        })
    }

    /// Whether there is nothing to be flushed or dropped in a tree, and no job goes on.
    pub(crate) fn is_quiet(&self, tree: &Tree, jobs: &TreeJobs) -> bool {
        tree.state().full.is_empty()
            && !jobs.is_flushing
            && jobs.dropping.is_empty()
            && self.due_drop(jobs).is_empty()
            && jobs.compactions.is_empty()
    }
}
