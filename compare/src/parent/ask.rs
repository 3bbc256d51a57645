//! Runs a measurement in a child process.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Interrupt;

/// The interval at which the parent checks whether the child has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Starts this program with `command` and `job`, and returns its answer. Fails after `limit`, or
/// when the user interrupts.
pub(crate) fn ask<T: DeserializeOwned>(
    command: &str,
    job: &impl Serialize,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<T> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(command)
        .arg(serde_json::to_string(job)?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting a child process")?;
    let ended = wait(&mut child, limit, interrupt);
    if ended.is_err() {
        // The child may have ended meanwhile, which is no problem.
        let _ = child.kill();
        let _ = child.wait();
    }
    ended?;
    // An answer fits in the buffer of a pipe, so the child never blocked on this read.
    let mut answer = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut answer)?;
    }
    serde_json::from_str(&answer).context("the answer of the child process")
}

fn wait(child: &mut Child, limit: Duration, interrupt: &Interrupt) -> Result<()> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return if status.success() { Ok(()) } else { bail!("the child process: {status}") };
        }
        if interrupt.is_set() {
            bail!("interrupted");
        }
        if begin.elapsed() > limit {
            bail!("gave up after {} s", limit.as_secs());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
