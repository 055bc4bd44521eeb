//! The handlers of the group Image builds.

use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        delivery::repositories,
        hosting::{
            image_builds::{Command, ImageBuildIndex, ImageBuilds, Source, State},
            images::{Images, has_version},
            progress_log::{Line, LineIndex, LinesPage},
        },
        world::World,
    },
    runtime::{entries::Under, pagination},
};
use contract::{
    Fault, JobId, Page, Serves,
    image_builds::{
        BuildJob, BuildJobLine, BuildJobLogs, BuildJobStatus, CancelDockerBuild, GetBuildJobLogs,
        GetBuildJobStatus, ListBuildJobs, TriggerDockerBuild,
    },
    text::ImageTag,
};
use store::Snapshot;

/// How many of the last lines of a build its status shows.
const TAIL: usize = 100;

fn build_job(world: &World, id: JobId) -> Result<Snapshot<ImageBuilds>, Fault> {
    let found = world.store.get::<ImageBuilds>(&id)?;
    found.ok_or(Fault::NotFound("build"))
}

/// The last lines of a build, oldest first.
fn last_lines(world: &World, id: JobId) -> Result<Vec<String>, Fault> {
    let newest = world.store.newest::<Line>(&LineIndex::of(id), None).take(TAIL);
    let mut lines =
        newest.map(|found| Ok(found?.1.text.clone())).collect::<Result<Vec<_>, Fault>>()?;
    lines.reverse();
    Ok(lines)
}

impl Serves<TriggerDockerBuild> for Platform {
    async fn serve(&self, cx: &Call, p: TriggerDockerBuild) -> Result<BuildJob, Fault> {
        repositories::needs_no_key("source.git.url", &p.source.git.url)?;
        if p.source.git.dockerfile.is_some() {
            return Err(Fault::invalid(
                "source.git.dockerfile",
                "is unknown: give source.dockerfile",
            ));
        }
        self.world.check_room(0)?;
        let found = self.world.store.get::<Images>(&p.image_id)?;
        let image = found.ok_or(Fault::NotFound("image"))?.state.clone();
        if image.versions.iter().any(|known| known.version == p.version) {
            return Err(has_version(&image, &p.version));
        }
        let tag: Result<ImageTag, String> = p.version.as_str().parse();
        tag.map_err(|problem| Fault::invalid("version", format!("{problem}: it becomes the tag")))?;
        let id: JobId = self.world.ports.random.id(cx.now);
        let source = Source::Repository(Box::new(p.source));
        let limit = self.world.ports.site.image_build_limit;
        let state = State::new(id, (p.image_id, p.version), source, limit, cx.now);
        let show = |state: &State| Ok(state.job.clone());
        cx.to::<ImageBuilds>(id).create(state, show).await
    }
}

impl Serves<GetBuildJobStatus> for Platform {
    async fn serve(&self, _: &Call, p: GetBuildJobStatus) -> Result<BuildJobStatus, Fault> {
        let job = build_job(&self.world, p.job_id)?.job.clone();
        Ok(BuildJobStatus::of(job, last_lines(&self.world, p.job_id)?))
    }
}

impl Serves<GetBuildJobLogs> for Platform {
    async fn serve(&self, _: &Call, p: GetBuildJobLogs) -> Result<BuildJobLogs, Fault> {
        // Read the state before the lines, so that lines written in between go to the next page.
        let done = build_job(&self.world, p.job_id)?.pending().is_none();
        let LinesPage { lines, next_cursor, more } =
            LinesPage::read(&self.world.store, p.job_id, p.cursor)?;
        let lines = lines.into_iter().map(|line| BuildJobLine { at: line.at, text: line.text });
        Ok(BuildJobLogs { lines: lines.collect(), next_cursor, done: done && !more })
    }
}

impl Serves<ListBuildJobs> for Platform {
    async fn serve(&self, _: &Call, p: ListBuildJobs) -> Result<Page<BuildJob>, Fault> {
        let (store, slice) = (&self.world.store, (p.limit, p.cursor));
        let show = |_, seen: &Snapshot<ImageBuilds>| {
            let wanted = p.state.is_none_or(|state| seen.job.state == state);
            Ok(wanted.then(|| seen.job.clone()))
        };
        match p.image_id {
            Some(image) => {
                let entry = Under::<Images>(image);
                pagination::counted(store, &entry, slice, p.state.is_some(), show)
            }
            None => {
                pagination::counted(store, &ImageBuildIndex::All, slice, p.state.is_some(), show)
            }
        }
    }
}

impl Serves<CancelDockerBuild> for Platform {
    async fn serve(&self, cx: &Call, p: CancelDockerBuild) -> Result<BuildJob, Fault> {
        let show = |state: &State| Ok(state.job.clone());
        cx.to::<ImageBuilds>(p.job_id).change(Command::Cancel, show).await
    }
}
