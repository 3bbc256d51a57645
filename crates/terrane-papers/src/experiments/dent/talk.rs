//! A program that reads the command language, timed.
//!
//! A run writes the puts to the program, then one get, whose answer shows that the puts are complete,
//! then the gets. The time of the puts includes the start of the program. Both times include writing the
//! commands, which takes a fraction of the time of reading them. A program that merges in the background
//! finishes its merges before the gets, and their processor time counts towards the puts.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use terrane_lab::host::resources::processor_seconds_of_process;

use super::workload::CommandWorkload;

/// A program is idle if it uses no tick of processor time for this long.
const REST: Duration = Duration::from_millis(200);
/// A program that never becomes idle receives its gets after this time.
const REST_MAX: Duration = Duration::from_secs(60);

/// A program and its arguments.
pub(super) struct Program<'a> {
    pub(super) path: &'a Path,
    pub(super) arguments: Vec<String>,
    /// The directory in which the program runs.
    pub(super) dir: &'a Path,
}

/// Rates, processor times and wrong answers of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProgramRun {
    pub(super) puts_per_second: f64,
    /// `None` without gets.
    pub(super) gets_per_second: Option<f64>,
    /// Processor time of all threads for a put, in microseconds; `None` if it is unknown.
    pub(super) put_cpu_micros: Option<f64>,
    /// Processor time of all threads for a get, in microseconds; `None` if it is unknown.
    pub(super) get_cpu_micros: Option<f64>,
    pub(super) wrong_answers: u64,
}

impl ProgramRun {
    /// Combines two runs: the better value of each operation, and the larger number of wrong
    /// answers.
    pub(super) fn best(self, other: Self) -> Self {
        let least = |one: Option<f64>, two| [one, two].into_iter().flatten().reduce(f64::min);
        let gets = [self.gets_per_second, other.gets_per_second];
        Self {
            puts_per_second: self.puts_per_second.max(other.puts_per_second),
            gets_per_second: gets.into_iter().flatten().reduce(f64::max),
            put_cpu_micros: least(self.put_cpu_micros, other.put_cpu_micros),
            get_cpu_micros: least(self.get_cpu_micros, other.get_cpu_micros),
            wrong_answers: self.wrong_answers.max(other.wrong_answers),
        }
    }
}

/// Kills the child process when dropped.
struct RunningProgram {
    child: Child,
    path: PathBuf,
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a process has used no processor time for a while, and returns its total processor
/// time.
fn processor_seconds_at_rest(id: u32) -> Option<f64> {
    let begin = Instant::now();
    let mut used = processor_seconds_of_process(id)?;
    let mut since = begin;
    while since.elapsed() < REST && begin.elapsed() < REST_MAX {
        std::thread::sleep(REST / 20);
        let now = processor_seconds_of_process(id)?;
        if now > used {
            (used, since) = (now, Instant::now());
        }
    }
    Some(used)
}

/// Runs a program on a workload.
pub(super) fn run(program: &Program<'_>, workload: &CommandWorkload) -> Result<ProgramRun> {
    let failed = || format!("cannot run {}", program.path.display());
    let mut command = Command::new(program.path);
    command.args(&program.arguments).current_dir(program.dir).env("TMPDIR", program.dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let begin = Instant::now();
    let child = command.spawn().with_context(failed)?;
    let mut running = RunningProgram { child, path: program.path.to_owned() };
    let pipes = running.child.stdin.take().zip(running.child.stdout.take());
    let (mut input, output) = pipes.ok_or_else(|| anyhow!("{} has no pipes", failed()))?;
    let mut output = BufReader::with_capacity(1 << 20, output);
    let mut line = String::new();
    let sent = workload.write_puts(&mut input).and_then(|()| input.write_all(b"g 0\n"));
    sent.and_then(|()| input.flush()).with_context(failed)?;
    ensure!(output.read_line(&mut line)? > 0, "{} ended", running.path.display());
    let puts = begin.elapsed();
    let put_seconds = processor_seconds_at_rest(running.child.id());
    let begin = Instant::now();
    let mut wrong_answers = 0;
    std::thread::scope(|scope| -> Result<()> {
        let writer = scope.spawn(move || {
            // The end of its input ends the program.
            input.write_all(&workload.gets)
        });
        for expected in &workload.answers {
            line.clear();
            ensure!(output.read_line(&mut line)? > 0, "{} ended", running.path.display());
            let answer = line.trim_end();
            let is_right = match expected {
                Some(value) => answer.parse() == Ok(*value),
                None => answer.is_empty(),
            };
            wrong_answers += u64::from(!is_right);
        }
        // The times of an exited process remain readable until it is waited for.
        writer.join().map_err(|_| anyhow!("a thread panicked"))?.with_context(failed)
    })?;
    let gets = begin.elapsed();
    let all_seconds = processor_seconds_of_process(running.child.id());
    running.child.wait()?;
    let cpu_micros = |seconds: f64, count: u64| seconds * 1e6 / count as f64;
    let get_seconds = all_seconds.zip(put_seconds).map(|(all, puts)| all - puts);
    let rate = |count: u64, took: Duration| count as f64 / took.as_secs_f64().max(1e-9);
    let get_count = workload.answers.len() as u64;
    Ok(ProgramRun {
        puts_per_second: rate(workload.put_count, puts),
        gets_per_second: (get_count > 0).then(|| rate(get_count, gets)),
        put_cpu_micros: put_seconds.map(|seconds| cpu_micros(seconds, workload.put_count)),
        get_cpu_micros: get_seconds
            .filter(|_| get_count > 0)
            .map(|seconds| cpu_micros(seconds, get_count)),
        wrong_answers,
    })
}
