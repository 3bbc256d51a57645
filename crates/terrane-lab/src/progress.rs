//! Progress of long work, on standard error: bars on a terminal, and elsewhere a line now and then.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

const TICK: Duration = Duration::from_millis(100);

/// Redrawing more often would cost, and no one would see it.
const DRAWS_PER_SECOND: u8 = 10;

/// How long nothing is said where there are no bars.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// All bars, so that lines can be written while they are there.
static BARS: LazyLock<MultiProgress> = LazyLock::new(|| {
    MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND))
});

/// Writes a line to standard error, above the bars.
pub fn line(text: &str) {
    BARS.suspend(|| {
        let _ = writeln!(io::stderr(), "{text}");
    });
}

/// A bar for work whose amount is known, in steps of anything.
pub fn bar(total: u64, what: impl Into<Cow<'static, str>>) -> ProgressBar {
    styled(Some(total), what, "{prefix} {bar:30} {percent:>3}%  {msg}")
}

/// A bar for work whose amount is known in bytes.
pub fn bytes(total_bytes: u64, what: impl Into<Cow<'static, str>>) -> ProgressBar {
    let template = "{prefix} {bar:30} {percent:>3}%  {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left  {msg}";
    styled(Some(total_bytes), what, template)
}

/// For work whose amount is not known.
pub fn spinner(what: impl Into<Cow<'static, str>>) -> ProgressBar {
    let spinner = styled(None, what, "{spinner} {prefix} {elapsed}  {msg}");
    spinner.enable_steady_tick(TICK);
    spinner
}

/// Lines where no one sees bars: the first after some seconds, and then one each time that these have
/// gone by again, so that who waits for something long knows that it goes on.
#[derive(Debug)]
pub struct NowAndThen {
    last: Mutex<Instant>,
}

impl NowAndThen {
    /// From now on.
    pub fn start() -> Self {
        Self { last: Mutex::new(Instant::now()) }
    }

    /// Writes a line if it is time to, and standard error is no terminal.
    pub fn tell(&self, text: impl FnOnce() -> String) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= BETWEEN_LINES && !io::stderr().is_terminal() {
            *last = Instant::now();
            line(&text());
        }
    }
}

fn styled(total: Option<u64>, what: impl Into<Cow<'static, str>>, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("█▉▊▋▌▍▎▏ ");
    let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    BARS.add(bar).with_style(style).with_prefix(what)
}
