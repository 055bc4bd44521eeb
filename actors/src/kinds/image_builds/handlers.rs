//! The functions of the group Image builds.

use super::{Command, ImageBuilds, State};
use crate::{
    call::{context::Call, pagination},
    kinds::{image_builds::ImageBuildIndex, images::Images},
    platform::Platform,
    runtime::{
        entries::Under,
        progress_log::{Line, LineIndex},
    },
};
use contract::{
    Fault, JobId, Page, Serves,
    image_builds::{
        BuildJob, BuildJobState, BuildJobStatus, CancelDockerBuild, GetBuildJobStatus,
        ListBuildJobs, TriggerDockerBuild,
    },
    text::ImageTag,
};
use store::Snapshot;

/// Lines of a build that are shown.
const TAIL: usize = 100;
/// What the image is worth of all, in percent; the rest is the push.
const BUILT: usize = 90;

impl Platform {
    fn build_job(&self, id: JobId) -> Result<Snapshot<ImageBuilds>, Fault> {
        let found = self.world.store.get::<ImageBuilds>(&id)?;
        found.ok_or(Fault::NotFound("build"))
    }

    /// What a build said last, oldest first.
    fn last_lines(&self, id: JobId) -> Result<Vec<String>, Fault> {
        let store = &self.world.store;
        let keys = store.newest(&LineIndex::of(id), None, TAIL)?;
        let mut lines = Vec::with_capacity(keys.len());
        for key in keys.iter().rev() {
            let line = store.get::<Line>(key)?;
            lines.extend(line.map(|line| line.text.clone()));
        }
        Ok(lines)
    }
}

/// How far a build is, from the last step that it named: `Step 2/5 : …`.
fn progress(lines: &[String]) -> u8 {
    let step = lines.iter().rev().find_map(|line| {
        let (done, all) = line.strip_prefix("Step ")?.split_once(' ')?.0.split_once('/')?;
        Some((done.parse::<usize>().ok()?, all.parse::<usize>().ok()?))
    });
    let part = step.map_or(0, |(done, all)| BUILT * done.saturating_sub(1) / all.max(1));
    u8::try_from(part.min(BUILT)).unwrap_or(0)
}

impl Serves<TriggerDockerBuild> for Platform {
    async fn serve(&self, cx: &Call, p: TriggerDockerBuild) -> Result<BuildJob, Fault> {
        let found = self.world.store.get::<Images>(&p.image_id)?;
        let image = found.ok_or(Fault::NotFound("image"))?.state.clone();
        if image.versions.iter().any(|known| known.version == p.version) {
            return Err(Fault::Exists(format!(
                "{} has a version {} already",
                image.name, p.version
            )));
        }
        let tag: Result<ImageTag, String> = p.version.as_str().parse();
        tag.map_err(|problem| Fault::invalid("version", format!("{problem}: it becomes the tag")))?;
        let id: JobId = self.world.ports.random.id(cx.now);
        let job = BuildJob {
            id,
            image_id: p.image_id,
            version: p.version,
            state: BuildJobState::Queued,
            progress: 0,
            digest: None,
            error: None,
            created_at: cx.now,
            started_at: None,
            finished_at: None,
        };
        let state = State { job, source: p.source, deadline: None };
        let show = |state: &State| Ok(state.job.clone());
        cx.create(&self.world, &self.owners()?.image_builds, id, state, show).await
    }
}

impl Serves<GetBuildJobStatus> for Platform {
    async fn serve(&self, _: &Call, p: GetBuildJobStatus) -> Result<BuildJobStatus, Fault> {
        let mut job = self.build_job(p.job_id)?.state.job.clone();
        let log_tail = self.last_lines(p.job_id)?;
        if job.state == BuildJobState::Building {
            job.progress = progress(&log_tail);
        }
        Ok(BuildJobStatus { job, log_tail })
    }
}

impl Serves<ListBuildJobs> for Platform {
    async fn serve(&self, _: &Call, p: ListBuildJobs) -> Result<Page<BuildJob>, Fault> {
        let (store, slice) = (&self.world.store, (p.limit, p.cursor));
        let show = |_, seen: &Snapshot<ImageBuilds>| Ok(Some(seen.job.clone()));
        match p.image_id {
            Some(image) => pagination::page(store, &Under::<Images>(image), slice, show),
            None => pagination::page(store, &ImageBuildIndex::All, slice, show),
        }
    }
}

impl Serves<CancelDockerBuild> for Platform {
    async fn serve(&self, cx: &Call, p: CancelDockerBuild) -> Result<BuildJob, Fault> {
        let owners = &self.owners()?.image_builds;
        let show = |state: &State| Ok(state.job.clone());
        cx.change(&self.world, owners, p.job_id, Command::Cancel, show).await
    }
}

#[cfg(test)]
mod tests {
    use super::progress;

    #[test]
    fn progress_is_what_the_log_says() {
        let lines = |all: &[&str]| all.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert_eq!(progress(&lines(&["fetching"])), 0);
        assert_eq!(progress(&lines(&["Step 1/4 : FROM a", "Step 3/4 : RUN b", " ---> x"])), 45);
        assert_eq!(progress(&lines(&["Step 9/0 : odd", "Step x"])), 90);
    }
}
