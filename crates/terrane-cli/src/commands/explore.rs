//! `terrane explore`: a page on which one designs a tree and watches it in virtual time.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use terrane_lab::input::spec;

use crate::exit::{Exit, usage};
use crate::output;
use crate::web::browser::open_in_browser;
use crate::web::{PAGE, PageAlone, WebServer};

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
        let server = WebServer::listen(self.port)
            .with_context(|| format!("cannot listen on port {}", self.port))?;
        let address = format!("http://{}/{}", server.address(), fragment);
        let mut out = output::stdout();
        writeln!(out, "{address}")?;
        out.flush()?;
        drop(out);
        if !self.no_browser {
            open_in_browser(&address);
        }
        server.serve(&Arc::new(PageAlone)).context("cannot serve the page")?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn designs_are_escaped() {
        assert_eq!(escaped("tiering T=4; L0=2"), "tiering%20T%3D4%3B%20L0%3D2");
    }
}
