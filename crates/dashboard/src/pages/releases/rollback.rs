//! The rollback of a release: its plan, and the rollback itself.

use super::{at, frame_of, show_with};
use crate::{
    form::Form,
    frame::Frame,
    response::{PageResult, Refused, done, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, ReleaseId,
    releases::{GetRelease, Rollback, RollbackRelease},
};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/releases/{id}/rollback", web::get().to(plan))
        .route("/releases/{id}/rollback", web::post().to(roll_back));
}

#[derive(Template)]
#[template(path = "rollback.html")]
struct RollbackPage {
    frame: Frame,
    plan: Rollback,
    /// Whether no release takes its place.
    withdraw: bool,
}

impl RollbackPage {
    fn command(&self) -> String {
        let withdraw = if self.withdraw { " --withdraw" } else { "" };
        format!("svc release rollback {}{withdraw} --dry-run", self.plan.release.id)
    }
}

/// Shows what a rollback does, before it is done.
async fn plan(visitor: Visitor, path: web::Path<String>) -> PageResult {
    let release_id: ReleaseId = crate::pages::id(path, "release")?;
    let dry =
        |withdraw| RollbackRelease { release_id, to_release_id: None, withdraw, dry_run: true };
    // Without an earlier release, this one can only be withdrawn.
    let (plan, withdraw) = match visitor.read(&dry(false)).await {
        Err(Refused(Fault::NotNow(_))) => (visitor.read(&dry(true)).await?, true),
        plan => (plan?, false),
    };
    let (say, version) = (visitor.say(), &plan.release.version);
    let title =
        if withdraw { say.withdraw_version(version) } else { say.roll_back_version(version) };
    let frame = frame_of(&visitor, &plan.release, title).await?;
    let frame = frame.below(&plan.release.version, at(release_id));
    page(&RollbackPage { frame, plan, withdraw })
}

async fn roll_back(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let release_id: ReleaseId = crate::pages::id(path, "release")?;
    let back = visitor.read(&GetRelease { release_id }).await?;
    let params = |form: &Form| {
        let withdraw = form.has("withdraw", "yes");
        Ok(RollbackRelease { release_id, to_release_id: None, withdraw, dry_run: false })
    };
    match visitor.send(&form, params).await {
        Ok(Rollback { release, .. }) if release.id == release_id => {
            let note = match back.published_at {
                None => visitor.say().was_withdrawn(back.version),
                Some(_) => visitor.say().has_no_release(back.channel, back.version),
            };
            done(&at(release_id), note)
        }
        Ok(Rollback { release, .. }) => done(
            &at(release.id),
            visitor.say().serves_again(release.channel, release.version, back.version),
        ),
        Err(fault) => show_with(&visitor, release_id, form.refused(fault)).await,
    }
}
