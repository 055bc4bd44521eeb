//! Logs that grow: those of builds, image builds and deployments. A function reads one in parts.

use crate::{
    answer::{Answer, Refused},
    live::{self, Next, Update},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Cursor, Fault, Function, builds::GetBuildLogs, deployments::GetDeploymentLogs,
    image_builds::GetBuildJobLogs,
};
use serde::Deserialize;
use serde_json::json;
use std::{fmt::Display, time::Duration};

/// A part of a log, as a page shows it.
#[derive(Template)]
#[template(path = "log.html")]
pub struct Log {
    lines: Vec<String>,
    /// The position after the lines.
    pub seen: String,
    /// Whether no more lines come. The log of something that ended can have more than one part.
    pub is_whole: bool,
}

/// A function that reads a part of a log.
pub trait Logs: Function {
    /// The name of the parameter that says whose log it is.
    const OF: &'static str;

    /// The lines, the position after them, and whether no more lines come.
    fn part(reply: Self::Reply) -> (Vec<String>, Option<Cursor>, bool);
}

macro_rules! logs {
    ($($function:ty, $of:literal;)+) => {$(
        impl Logs for $function {
            const OF: &'static str = $of;

            fn part(reply: Self::Reply) -> (Vec<String>, Option<Cursor>, bool) {
                let lines = reply.lines.into_iter().map(|line| line.text);
                (lines.collect(), reply.next_cursor, reply.done)
            }
        }
    )+};
}

logs! {
    GetBuildLogs, "buildId";
    GetBuildJobLogs, "jobId";
    GetDeploymentLogs, "deploymentId";
}

impl Log {
    /// Reads the part after a position. Empty: the first part.
    pub async fn read<F: Logs>(
        visitor: &Visitor,
        of: impl Display,
        after: &str,
    ) -> Result<Log, Refused> {
        let cursor = Some(after).filter(|after| !after.is_empty());
        let params = json!({F::OF: of.to_string(), "cursor": cursor});
        let (lines, next, is_whole) = F::part(visitor.send::<F>(&params, None).await?);
        let seen = next.map_or_else(|| after.to_owned(), |next| next.encode());
        Ok(Log { lines, seen, is_whole })
    }
}

/// Where a page ends that shows a log.
#[derive(Deserialize)]
pub struct Seen {
    #[serde(default)]
    after: String,
}

/// Streams what comes after the lines that a page shows, until the log is whole.
pub async fn follow<F: Logs + 'static>(
    visitor: Visitor,
    of: impl Display + 'static,
    web::Query(seen): web::Query<Seen>,
    interval: Duration,
) -> Answer {
    live::stream(visitor, interval, async move |visitor, last| {
        let log = Log::read::<F>(visitor, &of, last.unwrap_or(&seen.after)).await?;
        match (log.lines.is_empty(), log.is_whole) {
            (true, true) => Ok((Update::None, Next::Never)),
            (true, false) => Ok((Update::None, Next::Later)),
            (false, _) => {
                let html = log.render().map_err(|_| Refused(Fault::Internal))?;
                Ok((Update::Append(html, log.seen), Next::Later))
            }
        }
    })
    .await
}
