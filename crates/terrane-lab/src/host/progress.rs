//! Progress of long operations on standard error: bars on a terminal, with the elapsed time and an
//! estimate of the rest; occasional lines otherwise. A bar fits on one line at any terminal width.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

const TICK: Duration = Duration::from_millis(100);

/// Redrawing more often costs time without visible benefit.
const DRAWS_PER_SECOND: u8 = 10;

/// The interval between lines when standard error is not a terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// All bars; lines are written through it so that they appear above the bars.
static BARS: LazyLock<MultiProgress> = LazyLock::new(|| {
    MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND))
});

/// Writes a line to standard error, above the bars.
pub fn line(text: &str) {
    BARS.suspend(|| {
        let _ = writeln!(io::stderr(), "{text}");
    });
}

/// Returns a bar for `total` steps.
pub fn bar(total: u64, what: impl Into<Cow<'static, str>>) -> ProgressBar {
    styled(Some(total), what, "{prefix} {bar:16} {percent:>3}%  {elapsed}, {eta} left  {wide_msg}")
}

/// Returns a bar for `total_bytes` bytes.
pub fn bytes(total_bytes: u64, what: impl Into<Cow<'static, str>>) -> ProgressBar {
    let template = "{prefix} {bar:16} {percent:>3}%  {binary_bytes} of {binary_total_bytes}, {elapsed}, {eta} left  {wide_msg}";
    styled(Some(total_bytes), what, template)
}

/// Returns a spinner for an operation of unknown length.
pub fn spinner(what: impl Into<Cow<'static, str>>) -> ProgressBar {
    let spinner = styled(None, what, "{spinner} {prefix} {elapsed}  {wide_msg}");
    spinner.enable_steady_tick(TICK);
    spinner
}

/// Progress lines for output that is not a terminal, at most one per `BETWEEN_LINES`, so that a
/// user sees that a long operation is still running.
#[derive(Debug)]
pub struct NowAndThen {
    last: Mutex<Instant>,
}

impl NowAndThen {
    /// Starts the first interval.
    pub fn start() -> Self {
        Self { last: Mutex::new(Instant::now()) }
    }

    /// Writes a line if the interval has passed and standard error is not a terminal.
    pub fn tell(&self, text: impl FnOnce() -> String) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= BETWEEN_LINES && !io::stderr().is_terminal() {
            *last = Instant::now();
            line(&text());
        }
    }
}

/// Tells of a step of a long measurement: a line at most every few seconds if standard error is not a
/// terminal, which has bars instead.
pub fn step(text: &str) {
    static STEPS: LazyLock<NowAndThen> = LazyLock::new(NowAndThen::start);
    STEPS.tell(|| format!("  {text}"));
}

fn styled(total: Option<u64>, what: impl Into<Cow<'static, str>>, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("█▉▊▋▌▍▎▏ ");
    let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    BARS.add(bar).with_style(style).with_prefix(what)
}
