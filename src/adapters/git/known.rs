//! The files of commits that were read before. A server that says that a branch still has the same
//! commit is asked for nothing more.
//!
//! A commit is known under the address that it was read from: who may list the branches of a
//! repository may read it, and a server can name commits of repositories that it does not have.

use contract::text::GitUrl;
use quick_cache::{Weighter, sync::Cache};
use repository::{FileContent, Files};

/// Bytes of files that are kept, for all tenants together.
const BYTES: u64 = 16 << 20;
/// What an entry needs beside its texts.
const LEAST: u64 = 512;

pub(super) struct KnownCommits(Cache<(GitUrl, String), Files, Weight>);

impl Default for KnownCommits {
    fn default() -> Self {
        let count = usize::try_from(BYTES / LEAST).unwrap_or(usize::MAX);
        KnownCommits(Cache::with_weighter(count, BYTES, Weight))
    }
}

impl KnownCommits {
    pub fn get(&self, url: &GitUrl, commit: &str) -> Option<Files> {
        self.0.get(&(url.clone(), commit.to_owned()))
    }

    pub fn add(&self, url: &GitUrl, commit: &str, files: Files) {
        self.0.insert((url.clone(), commit.to_owned()), files);
    }
}

#[derive(Clone)]
struct Weight;

impl Weighter<(GitUrl, String), Files> for Weight {
    fn weight(&self, _: &(GitUrl, String), files: &Files) -> u64 {
        let Files { package, config, workflow } = files;
        let texts = [package, config, workflow].map(|content| match content {
            FileContent::Missing => 0,
            FileContent::Unreadable(text) | FileContent::Text(text) => text.len() as u64,
        });
        LEAST + texts.iter().sum::<u64>()
    }
}
