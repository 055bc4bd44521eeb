//! The pages for operators: the state of the installation, what needs attention, and the actors.
//! [`lists`] has the users, organizations, projects and the audit log.

mod certificates;
mod engines;
mod lists;
mod usage;

use crate::{
    form::Form,
    frame::{Frame, Tab},
    list::{CURSOR, address},
    live::{self, Next, Update},
    response::{PageResult, Refused, done, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, Limit,
    backups::VerifyBackup,
    checkouts::SettleCheckout,
    operators::{
        Actor, ActorList, ActorState, Attention, AttentionAction, GetActors, GetOverview, Overview,
        RestartActor,
    },
    service::Registration,
};
use messages::Messages;
use serde::Deserialize;
use std::time::Duration;

/// The pauses between two readings of the state and of the actors. Each reading is a call of the
/// person, so one page makes thirty calls a minute.
const STATE_EVERY: Duration = Duration::from_secs(3);
const ACTORS_EVERY: Duration = Duration::from_secs(6);

/// The actors that a page shows.
const ACTORS: Limit = Limit::at_most(25);

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/operations", web::get().to(show))
        .route("/operations/state", web::get().to(state))
        .route("/operations/actors", web::get().to(actors))
        .route("/operations/restart", web::post().to(restart))
        .route("/operations/settle", web::post().to(settle))
        .route("/operations/verify", web::post().to(verify));
    certificates::configure(app);
    engines::configure(app);
    lists::configure(app);
    usage::configure(app);
}

/// The pages of operators: the last part of the address, and the label.
const TABS: &[Tab] = &[
    ("", Messages::state),
    ("/users", Messages::users),
    ("/organizations", Messages::all_organizations),
    ("/projects", Messages::all_projects),
    ("/usage", Messages::usage),
    ("/engines", Messages::container_engines),
    ("/certificates", Messages::certificates),
    ("/images", Messages::images),
    ("/image-builds", Messages::image_builds),
    ("/checkouts", Messages::unsettled_checkouts),
    ("/channels", Messages::commerce_channels),
    ("/audit", Messages::audit_log),
];

/// The frame of the tab with this last part of the address.
pub async fn tab(visitor: &Visitor, here: &str) -> Result<Frame, Refused> {
    let frame = Frame::of(visitor, Messages::menu_operations).await?;
    Ok(frame.with_tabs(Messages::menu_operations, ("/operations", here), TABS))
}

/// The actors that a person searches for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ActorsQuery {
    kind: String,
    state: String,
    query: String,
    cursor: String,
}

impl ActorsQuery {
    fn form(&self) -> Form {
        let ActorsQuery { kind, state, query, cursor } = self;
        Form::search([("kind", kind), ("state", state), ("query", query), (CURSOR, cursor)])
    }
}

/// What is replaced while the page is open: the attention list and the figures.
#[derive(Template)]
#[template(path = "operations_state.html")]
struct OverviewSummary<'a> {
    frame: &'a Frame,
    /// Who may register.
    registration: Registration,
    overview: &'a Overview,
}

impl OverviewSummary<'_> {
    /// When the service started, to the second.
    fn started(&self) -> contract::Timestamp {
        let up = Duration::from_millis(self.overview.readiness.uptime_ms);
        let started = (self.overview.at - up).as_millis();
        contract::Timestamp::from_millis(started - started.rem_euclid(1000))
    }

    /// The form that does something about an entry: its address, its field, and its label.
    fn form(say: &Messages, entry: &Attention) -> Option<(&'static str, &'static str, String)> {
        match entry.action {
            AttentionAction::RestartActor => {
                Some(("/operations/restart", "actorId", say.restart()))
            }
            AttentionAction::SettleCheckout => {
                Some(("/operations/settle", "reference", say.settle()))
            }
            AttentionAction::VerifyBackup => Some(("/operations/verify", "backupId", say.verify())),
            AttentionAction::OpenApp | AttentionAction::CheckMachine | AttentionAction::Wait => {
                None
            }
        }
    }
}

/// The actors, which are replaced while the page is open.
#[derive(Template)]
#[template(path = "operations_actors.html")]
struct ActorTable<'a> {
    frame: &'a Frame,
    actors: &'a ActorList,
}

impl ActorTable<'_> {
    /// The message in hand, and for how long.
    fn handling(actor: &Actor) -> String {
        actor.handling.as_ref().map_or_else(String::new, |handling| {
            format!("{}, {}", handling.message, lasted(handling.elapsed_ms))
        })
    }
}

/// A time in milliseconds, such as `1.5 s`.
fn lasted(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min", ms / 60_000),
    }
}

#[derive(Template)]
#[template(path = "operations.html")]
struct OperationsPage {
    frame: Frame,
    /// Who may register.
    registration: Registration,
    overview: Overview,
    /// `None` if the search was refused.
    actors: Option<ActorList>,
    form: Form,
    query: ActorsQuery,
}

impl OperationsPage {
    fn states(&self) -> [(&'static str, &'static str); 4] {
        [
            ("running", ActorState::Running),
            ("restarting", ActorState::Restarting),
            ("gaveUp", ActorState::GaveUp),
            ("stuck", ActorState::Stuck),
        ]
        .map(|(name, state)| (name, state.label()))
    }

    fn state_html(&self) -> askama::Result<String> {
        let registration = self.registration;
        OverviewSummary { frame: &self.frame, registration, overview: &self.overview }.render()
    }

    fn actors_html(&self, actors: &ActorList) -> askama::Result<String> {
        ActorTable { frame: &self.frame, actors }.render()
    }

    fn actors_address(&self) -> String {
        address("/operations/actors", self.query.form().fields())
    }

    fn next(&self) -> Option<String> {
        let cursor = self.actors.as_ref()?.next_cursor.as_ref()?.encode();
        let form = self.query.form();
        let filters = form.fields().filter(|(name, _)| *name != CURSOR);
        Some(address("/operations", filters.chain([(CURSOR, cursor.as_str())])))
    }
}

async fn show(visitor: Visitor, query: web::Query<ActorsQuery>) -> PageResult {
    show_with(&visitor, query.into_inner(), None).await
}

async fn show_with(visitor: &Visitor, query: ActorsQuery, refused: Option<Fault>) -> PageResult {
    let overview = visitor.read(&GetOverview {}).await?;
    let (actors, mut form) = find_actors(visitor, &query).await?;
    if let Some(fault) = refused {
        form = form.refused(fault);
    }
    let frame = tab(visitor, "").await?;
    let registration = visitor.settings().registration;
    let page = OperationsPage { frame, registration, overview, actors, form, query };
    form_page(&page.form.clone(), &page)
}

async fn find_actors(
    visitor: &Visitor,
    query: &ActorsQuery,
) -> Result<(Option<ActorList>, Form), Refused> {
    let params = |form: &Form| {
        Ok(GetActors {
            kind: form.get("kind")?,
            state: form.get("state")?,
            query: form.get("query")?,
            limit: ACTORS,
            cursor: form.get(CURSOR)?,
        })
    };
    visitor.search(query.form(), params).await
}

async fn state(visitor: Visitor) -> PageResult {
    live::stream(visitor, STATE_EVERY, async |visitor, last| {
        let overview = visitor.read(&GetOverview {}).await?;
        let frame = Frame::open(visitor, |_| String::new());
        let registration = visitor.settings().registration;
        let summary = OverviewSummary { frame: &frame, registration, overview: &overview };
        live::replaced(&summary, last, Next::Later)
    })
    .await
}

async fn actors(visitor: Visitor, query: web::Query<ActorsQuery>) -> PageResult {
    let query = query.into_inner();
    live::stream(visitor, ACTORS_EVERY, async move |visitor, last| {
        let (actors, _) = find_actors(visitor, &query).await?;
        let Some(actors) = actors else { return Ok((Update::None, Next::Never)) };
        let frame = Frame::open(visitor, |_| String::new());
        live::replaced(&ActorTable { frame: &frame, actors: &actors }, last, Next::Later)
    })
    .await
}

async fn restart(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| Ok(RestartActor { actor_id: form.get("actorId")? });
    match visitor.send(&form, params).await {
        Ok(actor) => done("/operations", visitor.say().the_actor_is_restarted(actor.id)),
        Err(fault) => show_with(&visitor, ActorsQuery::default(), Some(fault)).await,
    }
}

async fn settle(visitor: Visitor, form: Form) -> PageResult {
    let params =
        |form: &Form| Ok(SettleCheckout { reference: form.get("reference")?, by_hand: None });
    match visitor.send(&form, params).await {
        Ok(checkout) => {
            done("/operations", visitor.say().payment_is_being_settled(checkout.reference))
        }
        Err(fault) => show_with(&visitor, ActorsQuery::default(), Some(fault)).await,
    }
}

async fn verify(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| Ok(VerifyBackup { backup_id: form.get("backupId")? });
    match visitor.send(&form, params).await {
        Ok(backup) => done("/operations", visitor.say().backup_is_being_verified(backup.id)),
        Err(fault) => show_with(&visitor, ActorsQuery::default(), Some(fault)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_exact_as_they_are_long() {
        for (ms, words) in
            [(999, "999 ms"), (1_550, "1.5 s"), (59_999, "59.9 s"), (150_000, "2 min")]
        {
            assert_eq!(lasted(ms), words);
        }
    }
}
