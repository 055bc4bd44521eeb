//! The rollback of a release: its plan, and the rollback itself.

use super::{at, frame_of, show_with};
use crate::{
    form::Form,
    response::{Frame, PageResult, done, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    ReleaseId,
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
}

/// Shows what a rollback does, before it is done.
async fn plan(visitor: Visitor, path: web::Path<String>) -> PageResult {
    let release_id: ReleaseId = crate::pages::id(path, "release")?;
    let dry = RollbackRelease { release_id, to_release_id: None, dry_run: true };
    let plan = visitor.read(&dry).await?;
    let title = format!("Roll back {}", plan.release.version);
    let frame = frame_of(&visitor, &plan.release, &title).await?;
    let frame = frame.below(&plan.release.version, at(release_id));
    page(&RollbackPage { frame, plan })
}

async fn roll_back(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let release_id: ReleaseId = crate::pages::id(path, "release")?;
    let back = visitor.read(&GetRelease { release_id }).await?;
    let params = |_: &Form| Ok(RollbackRelease { release_id, to_release_id: None, dry_run: false });
    match visitor.send(&form, params).await {
        Ok(Rollback { release, .. }) if release.id == release_id => {
            done(&at(release_id), format!("{} was withdrawn. No user had got it.", back.version))
        }
        Ok(Rollback { release, .. }) => done(
            &at(release.id),
            format!(
                "{} serves {} again. {} was rolled back.",
                release.channel, release.version, back.version
            ),
        ),
        Err(fault) => show_with(&visitor, release_id, form.refused(fault)).await,
    }
}
