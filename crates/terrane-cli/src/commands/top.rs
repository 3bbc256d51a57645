//! `terrane top`: the activity of a database, refreshed in place.
//!
//! | module | one line |
//! |---|---|
//! | `page` | a sample as lines of text |
//! | `screen` | the terminal while a page is refreshed in it |
//! | `live` | the picture in a browser, and recordings |

mod live;
mod page;
mod screen;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Args;
use terrane_control::sample::Sample;
use terrane_control::{Item, Request};

use self::page::{Origin, lines};
use self::screen::{Screen, Size};
use crate::database::Database;
use crate::exit::Exit;
use crate::output;
use crate::terminal::{Paint, is_output_for_people};
use crate::web::live::WebFlags;
use terrane_lab::input::quantity::{count_in, time};
use terrane_lab::output::json::write_line;

/// The longest interval that the protocol allows.
const INTERVAL_MAX: Duration = Duration::from_secs(3600);
const INTERVAL_MIN: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Examples:
  terrane top ./db
  terrane top ./db --json --interval 10s
  terrane top ./db --web
  terrane top ./db --record incident.jsonl";

/// Show operations, latencies, stalls, jobs, memory and trees of a database, refreshed in place
///
/// The process that has the database open must serve a control socket; otherwise the page shows the
/// contents of the files. On a terminal, q or Ctrl-C leaves. Without a terminal, one page is
/// printed. A page covers the interval before it. With --web, a browser shows the tree as well, its
/// jobs, the last hour, and events, until Ctrl-C.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {
    /// The directory of the database
    db: PathBuf,

    /// The time between two pages
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,

    /// The number of pages [default: until q or Ctrl-C; without a terminal 1, with --json no limit]
    #[arg(long, value_name = "COUNT", conflicts_with = "web", value_parser = count_in::<u64>(1..=u64::MAX))]
    count: Option<u64>,

    /// Print a JSON object per interval
    #[arg(long, conflicts_with = "web")]
    json: bool,

    #[command(flatten)]
    web: WebFlags,

    /// With --web, print the address and open no browser
    #[arg(long, requires = "web")]
    no_browser: bool,

    /// Write samples, tables and events to a new file, which the page of --web or `terrane explore`
    /// opens later; until Ctrl-C
    #[arg(long, value_name = "FILE", conflicts_with_all = ["count", "json"])]
    record: Option<PathBuf>,
}

impl TopArgs {
    /// Shows the pages.
    pub(crate) fn run(&self) -> Result<Exit> {
        if self.web.web || self.record.is_some() {
            return self.follow();
        }
        let mut database = Database::to_view(&self.db)?;
        let interval_millis = millis(self.interval);
        let origin = Origin::of(&self.db, &database);
        if !database.is_served() {
            let dir = self.db.display();
            let _ = writeln!(io::stderr(), "no process serves {dir}: showing its files");
            // Nothing happens in a database that this process alone has open.
            let interval_millis = millis(INTERVAL_MIN);
            let request = Request::Top { interval_millis, count: Some(1), details: false };
            return self.print(&mut database, &request, &origin);
        }
        let is_refreshed = is_output_for_people() && !self.json && Screen::is_possible();
        let default = if is_refreshed || self.json { None } else { Some(1) };
        let request =
            Request::Top { interval_millis, count: self.count.or(default), details: false };
        if is_refreshed {
            refresh(&mut database, &request, &origin)
        } else {
            self.print(&mut database, &request, &origin)
        }
    }

    /// Prints pages one after the other.
    fn print(&self, database: &mut Database, request: &Request, origin: &Origin) -> Result<Exit> {
        let mut out = output::text_or_json(self.json);
        database.ask_each(request, &mut |item| {
            let Item::Sample(sample) = item else { return Ok(()) };
            if self.json {
                write_line(&mut out, &*sample)?;
            } else {
                for line in lines(&sample, origin, page::COLUMNS, Paint::stdout()) {
                    writeln!(out, "{line}")?;
                }
            }
            Ok(out.flush()?)
        })?;
        Ok(Exit::Done)
    }
}

/// Parses the time between two pages.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = time(text)?;
    match (INTERVAL_MIN..=INTERVAL_MAX).contains(&interval) {
        true => Ok(interval),
        false => Err("the time between two pages is 100 ms to 1 h".to_owned()),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Refreshes a page in the terminal until the user leaves.
fn refresh(database: &mut Database, request: &Request, origin: &Origin) -> Result<Exit> {
    let mut screen = Screen::begin()?;
    let draw = |screen: &mut Screen, sample: &Sample, size: Size| {
        screen.draw(&lines(sample, origin, size.columns, Paint::stdout()), size)
    };
    screen.draw(&[format!("{}: waiting for the first sample", origin.title)], Size::now())?;
    let mut last: Option<(Box<Sample>, Size)> = None;
    let shown = database.ask_while(
        request,
        &mut |part| {
            match part {
                Some(Item::Sample(sample)) => {
                    let size = Size::now();
                    draw(&mut screen, &sample, size)?;
                    last = Some((sample, size));
                }
                Some(_) => {}
                None => {
                    let now = Size::now();
                    if let Some((sample, size)) = last.as_mut().filter(|(_, size)| *size != now) {
                        *size = now;
                        draw(&mut screen, sample, now)?;
                    }
                }
            }
            Ok(())
        },
        &screen::is_quit_pressed,
    );
    // Errors are visible only once the terminal is restored.
    drop(screen);
    shown.map(|_| Exit::Done).map_err(|error| anyhow!(error))
}
