//! Checks which choices are valid together.
//!
//! Contradictions are rejected with a reason. Choices without an effect are rejected too, unless
//! earlier versions wrote them into databases: least overlap and round-robin with a granularity
//! that leaves nothing to choose, and both in one list.

use super::trigger::Manual;
use super::{Eagerness, Granularity, Growth, Movement, Strategy, Trigger, TriggerKind};
use crate::error::ParseError;

impl Strategy {
    /// Checks that the choices are valid, individually and together.
    ///
    /// # Errors
    /// Returns the first invalid choice, with the reason.
    pub fn validate(&self) -> Result<(), ParseError> {
        self.check_sizes()?;
        for triggers in self.triggers.values() {
            check_triggers(triggers)?;
        }
        self.check_size_tiered()?;
        self.check_granularity()?;
        let choices = self.granularity.values().len().max(self.movement.values().len());
        for level in 0..choices {
            self.check_movement(self.movement.at(level), *self.granularity.at(level))?;
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), ParseError> {
        let number = |holds: bool, key: &str, value: u32| {
            let wrong =
                || ParseError::new("design", format!("{key}={value}"), "a value of 2 to 1000");
            if holds { Ok(()) } else { Err(wrong()) }
        };
        number((2..=1000).contains(&self.size_ratio), "T", self.size_ratio)?;
        if !(1..=1000).contains(&self.level0_runs) {
            let found = format!("L0={}", self.level0_runs);
            return Err(ParseError::new("design", found, "1 to 1000"));
        }
        if self.base_bytes == Some(0) {
            return Err(ParseError::new("design", "base=0", "at least 1 byte"));
        }
        if self.base_bytes.is_some() && matches!(self.growth, Growth::Capacities(_)) {
            return Err(refuse(
                "base",
                "growth= already sets the capacity of level 1; leave base=auto",
            ));
        }
        Ok(())
    }

    /// Size-tiered strategies ignore levels, so they allow no other choice about levels.
    fn check_size_tiered(&self) -> Result<(), ParseError> {
        let is_sized = |trigger: &&Trigger| trigger.kind().is_size_tiered();
        let Some(sized) = self.triggers.values().iter().flatten().find(is_sized) else {
            return Ok(());
        };
        let found = format!("trigger={}", sized.kind());
        let about_levels =
            |one: &&Trigger| one.kind().is_load() || is_sized(one) && one.kind() != sized.kind();
        let other = self.triggers.values().iter().flatten().find(about_levels);
        if let Some(other) = other {
            let reason = format!(
                "it merges runs by size regardless of levels, and {} would merge the same runs by other rules",
                other.kind()
            );
            return Err(refuse(&found, &reason));
        }
        if self.triggers.values().len() > 1 {
            return Err(refuse(
                &found,
                "it applies to the whole tree, so all levels must have the same triggers",
            ));
        }
        if self.eagerness != Eagerness::Tiering {
            return Err(refuse(&found, "it requires levels that gather runs; use tiering"));
        }
        if self.granularity.values().iter().any(|granularity| granularity.tables().is_some()) {
            return Err(refuse(&found, "it merges whole runs; use granularity=run"));
        }
        Ok(())
    }

    fn check_granularity(&self) -> Result<(), ParseError> {
        let gathers = self.eagerness.gathers() || self.level0_runs > 1;
        if !gathers && self.granularity.values().contains(&Granularity::Run) {
            return Err(refuse(
                "granularity=run",
                "it merges the runs of a level, and no level of this design gathers any; use level or file",
            ));
        }
        Ok(())
    }

    fn check_movement(
        &self,
        rules: &[Movement],
        granularity: Granularity,
    ) -> Result<(), ParseError> {
        let was_written =
            |rule: &Movement| matches!(rule, Movement::LeastOverlap | Movement::RoundRobin);
        if granularity.tables().is_none() {
            return rules.iter().find(|rule| !was_written(rule)).map_or(Ok(()), |rule| {
                let found = format!("movement={rule}");
                Err(refuse(&found, "granularity level and run move all of a level, so there is nothing to choose; use movement=none or granularity=file"))
            });
        }
        if rules.is_empty() {
            let gathers_only = self.eagerness.gathers();
            let reason = "granularity file and files need a rule that chooses tables";
            return if gathers_only { Ok(()) } else { Err(refuse("movement=none", reason)) };
        }
        for (at, rule) in rules.iter().enumerate() {
            let found = format!("movement={rule}");
            if rules[..at].contains(rule) {
                return Err(refuse(&found, "the rule is listed twice"));
            }
            let after = rules[..at].iter().find(|earlier| earlier.ranks_all());
            if let Some(earlier) =
                after.filter(|earlier| !was_written(rule) || !was_written(earlier))
            {
                let reason =
                    format!("{earlier} before it always finds a table, so it is never consulted");
                return Err(refuse(&found, &reason));
            }
            let ages = |trigger: &Trigger| trigger.rule().tombstone_times().is_some();
            let expires = self.triggers.values().iter().flatten().any(ages);
            if *rule == Movement::ExpiredTtl && !expires {
                return Err(refuse(&found, "nothing expires without trigger=tombstone-ttl(TIME)"));
            }
        }
        Ok(())
    }

    /// Returns true if all levels act only on request.
    pub fn is_manual(&self) -> bool {
        let only = |triggers: &Vec<Trigger>| triggers == &[Trigger::from(Manual)];
        self.triggers.values().iter().all(only)
    }
}

fn check_triggers(triggers: &[Trigger]) -> Result<(), ParseError> {
    if triggers.is_empty() {
        return Err(refuse(
            "trigger=",
            "a level without triggers is never compacted; use trigger=manual",
        ));
    }
    for (at, trigger) in triggers.iter().enumerate() {
        if triggers[..at].iter().any(|other| other.kind() == trigger.kind()) {
            return Err(refuse(&format!("trigger={trigger}"), "the trigger is listed twice"));
        }
    }
    let is_manual = |trigger: &Trigger| trigger.kind() == TriggerKind::Manual;
    if triggers.len() > 1 && triggers.iter().any(is_manual) {
        return Err(refuse("trigger=manual", "it has no effect together with another trigger"));
    }
    Ok(())
}

fn refuse(found: &str, reason: &str) -> ParseError {
    ParseError::new("design", found, format!("compatible choices: {reason}"))
}
