//! `svc open`: opens the install page of a release in a browser.

use crate::{Context, args, failure::Failure};
use contract::{
    page::Limit,
    releases::{GetRelease, GetReleases, Release, ReleaseState},
};
use serde_json::json;
use std::process::{Command, Stdio};

pub fn open(cx: &Context<'_>, args: args::OpenArgs) -> Result<(), Failure> {
    let release = release(cx, args)?;
    let page = release.publications.iter().find_map(|publication| publication.url.clone());
    let page = page.ok_or_else(|| {
        Failure::usage(
            format!("release {} has no install page", release.id),
            format!("publish it there: svc release publish {} --target ota", release.id),
        )
    })?;
    cx.printer.reply(&json!({"url": page}), |_| page.to_string())?;
    let is_web = page.starts_with("https://") || page.starts_with("http://");
    if is_web && console::user_attended() && !browse(&page) {
        cx.printer.note("no browser could be started: open the address yourself");
    }
    Ok(())
}

/// The named release, or else the published one of a channel.
fn release(cx: &Context<'_>, args: args::OpenArgs) -> Result<Release, Failure> {
    let client = cx.client()?;
    if let Some(release_id) = args.release {
        return client.call(&GetRelease { release_id });
    }
    let found = client.call(&GetReleases {
        app_id: cx.settings.app(args.app)?,
        channel: Some(args.channel.clone()),
        state: Some(ReleaseState::Published),
        limit: Limit::default(),
        cursor: None,
    })?;
    found.items.into_iter().next().ok_or_else(|| {
        Failure::usage(
            format!("no release of the channel {} is published", args.channel),
            "list all with `svc releases`, and publish one with `svc release publish`",
        )
    })
}

/// Starts the browser of this system. Returns whether that worked.
fn browse(url: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
