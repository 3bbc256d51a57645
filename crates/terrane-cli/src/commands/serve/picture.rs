//! The live picture of the served database.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use terrane::Db;

use crate::web::feed::Feed;
use crate::web::live::WebFlags;
use crate::web::source::Source;

/// The interval between samples.
const INTERVAL: Duration = Duration::from_secs(1);

/// A picture that is served until it is dropped.
pub(super) struct Picture {
    pub(super) address: String,
    feed: Arc<Feed>,
    following: Option<JoinHandle<()>>,
}

impl Picture {
    /// Serves the picture of a database of this process.
    pub(super) fn begin(flags: &WebFlags, db: &Db) -> Result<Self> {
        let feed = Arc::new(Feed::default());
        let source = Arc::new(Source::Own(db.clone()));
        let server = flags.listen(&source, &feed)?;
        let address = server.address();
        let serve = move || {
            if let Err(error) = server.serve() {
                tracing::warn!(target: "terrane_server", kind = "picture", "the picture is gone: {error}");
            }
        };
        let builder = thread::Builder::new().name("terrane-web".to_owned());
        builder.spawn(serve).context("cannot start a thread")?;
        let following =
            source.follow(Arc::clone(&feed), INTERVAL).context("cannot start a thread")?;
        Ok(Self { address, feed, following: Some(following) })
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        self.feed.end();
        // It must not use the database while that is being closed.
        drop(self.following.take().map(JoinHandle::join));
    }
}
