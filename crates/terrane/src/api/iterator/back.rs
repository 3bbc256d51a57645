//! Steps from the back.

use super::{Iter, IterValues};
use crate::base::error::Result;
use crate::base::stats::{Sample, Timed};
use crate::engine::cursor::VisibleCursor;

impl Iter {
    /// Moves the back to the previous entry; returns false at the start.
    pub(super) fn retreat(&mut self) -> Result<bool> {
        if self.is_done {
            return Ok(false);
        }
        self.check_process()?;
        self.is_done = true;
        if let Err(error) = self.leave_stretch().and_then(|()| self.step_back()) {
            // The position of the back is unknown, so the iterator stays empty even after a seek.
            self.end = Some(self.start.clone());
            return Err(error);
        }
        self.is_done = !self.back.as_ref().is_some_and(|back| self.is_back_inside(back));
        self.is_back_fresh = self.is_done;
        self.count += 1;
        if let (Some(back), IterValues::Load, false) = (&mut self.back, self.values, self.is_done)
            && let Err(error) = back.load_value(self.view.values())
        {
            self.is_done = true;
            self.end = Some(self.start.clone());
            return Err(error);
        }
        Ok(!self.is_done)
    }

    /// Moves the front to the current entry of the stretch.
    fn leave_stretch(&mut self) -> Result<()> {
        self.within = 0;
        let left = self.stretch.left();
        self.stretch.reset();
        match (&mut self.front, left) {
            (Some(front), Some(left)) if left > 0 => front.step_back(left),
            _ => Ok(()),
        }
    }

    fn step_back(&mut self) -> Result<()> {
        match &mut self.back {
            None => {
                let sample = Sample::begin();
                let back = self.view.cursor_before(self.end.as_deref(), &self.start)?;
                sample.end(&self.handle.engine.context.counters.durations, Timed::Seek);
                self.back = Some(Box::new(back));
                Ok(())
            }
            Some(_) if self.is_back_fresh => Ok(()),
            Some(cursor) => cursor.step(),
        }
    }

    fn is_back_inside(&self, back: &VisibleCursor) -> bool {
        let after_front = |front: &VisibleCursor| {
            // After a seek, either end may return the front's entry.
            let given = !self.is_front_fresh;
            front.is_valid()
                && if given { back.key() > front.key() } else { back.key() >= front.key() }
        };
        back.is_valid()
            && back.key() >= &self.start[..]
            && self.front.as_ref().is_none_or(after_front)
    }
}
