//! The picture in a browser, and recordings.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::{Context, Result};

use super::TopArgs;
use crate::exit::Exit;
use crate::open;
use crate::output;
use crate::web::browser::open_secret_in_browser;
use crate::web::feed::Feed;
use crate::web::source::Source;

impl TopArgs {
    /// Follows the database into a browser, a recording or both, until Ctrl-C.
    pub(super) fn follow(&self) -> Result<Exit> {
        // Reports the problem with the directory, if it holds no database.
        open::read_only(&self.db)?;
        let feed = Arc::new(Feed::default());
        let source = Arc::new(Source::Served(self.db.clone()));
        // A port that is in use leaves no empty recording.
        let picture = self.web.web.then(|| self.web.listen(&source, &feed)).transpose()?;
        if let Some(path) = &self.record {
            feed.record_to(path, !self.web.web)
                .with_context(|| format!("cannot write {}", path.display()))?;
            let _ = writeln!(io::stderr(), "recording to {}, until Ctrl-C", path.display());
        }
        let following =
            source.follow(Arc::clone(&feed), self.interval).context("cannot start a thread")?;
        if let Some(picture) = picture {
            let address = picture.address();
            let mut out = output::stdout();
            writeln!(out, "{address}")?;
            out.flush()?;
            drop(out);
            if !self.no_browser {
                open_secret_in_browser(&address);
            }
            picture.serve().context("cannot serve the page")?;
        }
        // It ends with the process, or with the recording.
        drop(following.join());
        match feed.take_record_error() {
            Some(error) => Err(error).context("the recording ends here"),
            None => Ok(Exit::Done),
        }
    }
}
