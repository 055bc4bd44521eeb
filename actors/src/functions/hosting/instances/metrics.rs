//! `svc_getServerMetrics` and `svc_getAppMetrics`.

use super::{cloud_functions::count_users, only_instance};
use crate::{
    call::{context::Call, platform::Platform},
    kinds::hosting::instances::metrics,
};
use contract::{
    Fault, Serves,
    backend_instances::{GetServerMetrics, ServerMetrics},
    instance_helpers::{AppMetrics, GetAppMetrics},
    instances::InstanceKind,
};

/// How far back the history goes, in minutes.
const MOST_MINUTES: u32 = 24 * 60;
const DEFAULT_MINUTES: u32 = 60;

impl Serves<GetServerMetrics> for Platform {
    async fn serve(&self, cx: &Call, p: GetServerMetrics) -> Result<ServerMetrics, Fault> {
        let minutes = p.minutes.unwrap_or(DEFAULT_MINUTES);
        if !(1..=MOST_MINUTES).contains(&minutes) {
            return Err(Fault::invalid("minutes", format!("must be from 1 to {MOST_MINUTES}")));
        }
        let (id, seen) = cx.ancestry.instance()?;
        let current = metrics::current(&self.world, id, &seen.state).await?;
        let history = metrics::history(&self.world.store, id, cx.now, minutes)?;
        Ok(ServerMetrics { current, history })
    }
}

impl Serves<GetAppMetrics> for Platform {
    async fn serve(&self, _: &Call, p: GetAppMetrics) -> Result<AppMetrics, Fault> {
        let (id, seen) = only_instance(&self.world, p.app_id, p.kind)?;
        let instance = &seen.state;
        let metrics = metrics::current(&self.world, id, instance).await?.ok_or_else(|| {
            Fault::NotNow(format!(
                "this instance is {}; start it to see what it uses",
                instance.state_name()
            ))
        })?;
        let counts = match instance.kind {
            InstanceKind::Backend => count_users(&self.world, id, instance).await,
            InstanceKind::Market => Err("market servers do not count their users".into()),
        };
        let (user_count, session_count, counts_unavailable) = match counts {
            Ok(counts) => (Some(counts.users), Some(counts.sessions), None),
            Err(why) => (None, None, Some(why)),
        };
        Ok(AppMetrics {
            cpu_percent: metrics.cpu_percent,
            memory_bytes: metrics.memory_bytes,
            memory_limit_bytes: metrics.memory_limit_bytes,
            memory_percent: metrics.memory_percent,
            user_count,
            session_count,
            counts_unavailable,
            sampled_at: metrics.sampled_at,
        })
    }
}
