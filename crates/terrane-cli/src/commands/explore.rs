//! `terrane explore`: a page on which one designs a tree and watches it in virtual time.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::Args;
use terrane_lab::input::spec;

use crate::exit::{Exit, usage};
use crate::output;
use crate::web::PageServer;

/// The page, which contains all of its scripts and the WebAssembly module. `cargo xtask page` builds it.
static PAGE: &[u8] = include_bytes!("../../page/explorer.html");

/// The most designs that the page compares.
const DESIGNS_MAX: usize = 4;

const EXAMPLES: &str = "\
Examples:
  terrane explore
  terrane explore leveling tiering 'hybrid T=8; runs=3,last:1'
  terrane explore --out site";

/// Explore designs in a browser: trees in virtual time, charts, comparisons, costs
///
/// The page simulates in the browser, with the engine's policy: it needs no database and makes no
/// network requests. It is served to this machine alone, until Ctrl-C.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExploreArgs {
    /// Designs to begin with, up to four, such as `tiering` or 'leveling T=4'
    #[arg(value_name = "DESIGN")]
    designs: Vec<String>,

    /// The port of the page; 0 is any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    /// Print the address and open no browser
    #[arg(long)]
    no_browser: bool,

    /// Write the page to a directory instead, where any web server can serve it and a browser can open it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["port", "no_browser"])]
    out: Option<PathBuf>,
}

impl ExploreArgs {
    /// Serves or writes the page.
    pub(crate) fn run(&self) -> Result<Exit> {
        if self.designs.len() > DESIGNS_MAX {
            return Err(usage(format!("the page compares at most {DESIGNS_MAX} designs")));
        }
        let fragment = self.fragment()?;
        match &self.out {
            Some(dir) => write(dir, &fragment),
            None => self.serve(&fragment),
        }
    }

    fn serve(&self, fragment: &str) -> Result<Exit> {
        let server = PageServer::listen(self.port)
            .with_context(|| format!("cannot listen on port {}", self.port))?;
        let address = format!("http://{}/{}", server.address(), fragment);
        let mut out = output::stdout();
        writeln!(out, "{address}")?;
        out.flush()?;
        drop(out);
        if !self.no_browser {
            open(&address);
        }
        server.serve(PAGE).context("cannot serve the page")?;
        Ok(Exit::Done)
    }

    /// Returns the part of the address that names the designs; empty if there are none.
    fn fragment(&self) -> Result<String> {
        let text = |given: &String| -> Result<String> {
            let design = spec::parse(given)?;
            // The page knows no files.
            Ok(if given.starts_with('@') { design.to_string() } else { given.clone() })
        };
        let designs = self
            .designs
            .iter()
            .map(|given| text(given).map(|design| format!("design={}", escaped(&design))));
        let designs = designs.collect::<Result<Vec<_>>>()?;
        Ok(if designs.is_empty() { String::new() } else { format!("#{}", designs.join("&")) })
    }
}

/// Writes the page to a directory.
fn write(dir: &Path, fragment: &str) -> Result<Exit> {
    let failed = || format!("cannot write to {}", dir.display());
    fs::create_dir_all(dir).with_context(failed)?;
    let page = dir.join("index.html");
    fs::write(&page, PAGE).with_context(failed)?;
    writeln!(output::stdout(), "{}{fragment}", page.display())?;
    Ok(Exit::Done)
}

/// Returns a text as a value of a query.
fn escaped(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let one = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

/// Opens an address in the browser of the desktop. Without a desktop, the printed address must do.
fn open(address: &str) {
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else if std::env::var_os("DISPLAY").or_else(|| std::env::var_os("WAYLAND_DISPLAY")).is_some()
    {
        ("xdg-open", &[])
    } else {
        return;
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(address);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C ends the server, and not the browser.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // A browser may run for as long as its user likes.
    drop(command.spawn());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn designs_are_escaped() {
        assert_eq!(escaped("tiering T=4; L0=2"), "tiering%20T%3D4%3B%20L0%3D2");
    }

    #[test]
    fn the_page_contains_everything() {
        let page = std::str::from_utf8(PAGE).unwrap();
        assert!(page.contains("<title>Terrane: design explorer</title>"));
        for other in [" src=\"", "<link rel=\"stylesheet\"", "SCRIPT-HASHES", "'unsafe-inline'"] {
            assert!(!page.contains(other), "{other}");
        }
        assert!(page.len() < 1 << 20);
    }
}
