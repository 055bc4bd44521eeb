//! Jobs: the builds, image builds and deployments. Each has a state, a log that grows, and a button that
//! cancels it.

use crate::{
    form::{Form, value},
    frame::{Frame, View},
    live::{self, Next, Update},
    pages::id,
    response::{Note, PageResult, Refused, done, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{Cursor, Fault, Function, Operation};
use messages::Messages;
use serde::Deserialize;
use std::{fmt::Display, str::FromStr, time::Duration};

/// A kind of job. The implementing type is the part of its page that shows its state.
pub trait Job: Template + Display + Sized + 'static {
    type Id: FromStr + Display + Copy + 'static;
    type Get: Function;
    type GetLog: Function;
    type Cancel: Function;

    /// The address above those of all jobs of this kind.
    const ABOVE: &'static str;
    /// What such a job is called in refusals.
    const NOUN: &'static str;
    /// The pause between two readings of its state or of its log.
    const INTERVAL: Duration;

    fn get(id: Self::Id) -> Self::Get;
    fn get_log(id: Self::Id, cursor: Option<Cursor>) -> Self::GetLog;
    fn cancel(id: Self::Id) -> Self::Cancel;

    fn new(job: <Self::Get as Operation>::Reply, frame: View) -> Self;
    fn log_part(reply: <Self::GetLog as Operation>::Reply) -> LogPart;
    /// What a person is told who cancelled it.
    fn cancelled(say: Messages, reply: <Self::Cancel as Operation>::Reply) -> Note;

    /// Whether its state stays as it is.
    fn has_ended(&self) -> bool;

    /// What the button says that cancels it.
    fn cancel_label(&self, say: &Messages) -> String;

    fn may_be_cancelled(&self) -> bool {
        !self.has_ended()
    }

    fn heading(&self) -> String;
    /// The command that shows the log.
    fn command(&self) -> String;
    async fn frame(&self, visitor: &Visitor) -> Result<Frame, Refused>;

    /// The address of the page.
    fn address(id: Self::Id) -> String {
        format!("{}/{id}", Self::ABOVE)
    }
}

/// What a function reads of a log.
pub struct LogPart {
    lines: Vec<String>,
    next_cursor: Option<Cursor>,
    is_whole: bool,
}

impl LogPart {
    /// Of lines, the position after them, and whether no more lines come.
    pub fn new(
        lines: impl IntoIterator<Item = String>,
        next_cursor: Option<Cursor>,
        is_whole: bool,
    ) -> LogPart {
        LogPart { lines: lines.into_iter().collect(), next_cursor, is_whole }
    }
}

/// A part of a log, as a page shows it.
#[derive(Template)]
#[template(path = "log.html")]
struct Log {
    lines: Vec<String>,
    /// The position after the lines.
    after: String,
    /// Whether no more lines come. The log of something that ended can have more than one part.
    is_whole: bool,
}

impl Log {
    /// Reads the part after a position. Empty: the first part.
    async fn read<J: Job>(visitor: &Visitor, id: J::Id, after: &str) -> Result<Log, Refused> {
        let cursor = value::read("cursor", [after])?;
        let part = J::log_part(visitor.read(&J::get_log(id, cursor)).await?);
        let after = part.next_cursor.map_or_else(|| after.to_owned(), |next| next.encode());
        Ok(Log { lines: part.lines, after, is_whole: part.is_whole })
    }
}

#[derive(Template)]
#[template(path = "job.html")]
struct JobPage<J: Job> {
    frame: Frame,
    address: String,
    job: J,
    log: Log,
    form: Form,
}

pub async fn show<J: Job>(visitor: Visitor, path: web::Path<String>) -> PageResult {
    show_with::<J>(&visitor, id(path, J::NOUN)?, Form::default()).await
}

async fn show_with<J: Job>(visitor: &Visitor, id: J::Id, form: Form) -> PageResult {
    let job = J::new(visitor.read(&J::get(id)).await?, visitor.view());
    let log = Log::read::<J>(visitor, id, "").await?;
    let frame = job.frame(visitor).await?;
    form_page(&form.clone(), &JobPage { frame, address: J::address(id), job, log, form })
}

/// Streams the state, until the job has ended.
pub async fn follow_state<J: Job>(visitor: Visitor, path: web::Path<String>) -> PageResult {
    let id: J::Id = id(path, J::NOUN)?;
    live::stream(visitor, J::INTERVAL, async move |visitor, last| {
        let job = J::new(visitor.read(&J::get(id)).await?, visitor.view());
        let next = if job.has_ended() { Next::Never } else { Next::Later };
        live::replaced(&job, last, next)
    })
    .await
}

/// Where a page ends that shows a log.
#[derive(Deserialize)]
pub struct LogQuery {
    #[serde(default)]
    after: String,
}

/// Streams what comes after the lines that a page shows, until the log is whole.
pub async fn follow_log<J: Job>(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<LogQuery>,
) -> PageResult {
    let id: J::Id = id(path, J::NOUN)?;
    live::stream(visitor, J::INTERVAL, async move |visitor, last| {
        let log = Log::read::<J>(visitor, id, last.unwrap_or(&query.after)).await?;
        match (log.lines.is_empty(), log.is_whole) {
            (true, true) => Ok((Update::None, Next::Never)),
            (true, false) => Ok((Update::None, Next::Later)),
            (false, _) => {
                let html = log.render().map_err(|_| Refused(Fault::Internal))?;
                Ok((Update::Append(html, log.after), Next::Later))
            }
        }
    })
    .await
}

pub async fn cancel<J: Job>(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let id: J::Id = id(path, J::NOUN)?;
    match visitor.send(&form, |_| Ok(J::cancel(id))).await {
        Ok(reply) => done(&J::address(id), J::cancelled(visitor.say(), reply)),
        Err(fault) => show_with::<J>(&visitor, id, form.refused(fault)).await,
    }
}
