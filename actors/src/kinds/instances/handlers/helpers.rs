//! The functions of the group Instance helpers: what an instance says, uses and holds.

use crate::{
    call::context::Call,
    kinds::instances::{Instance, Instances, container_spec, metrics, names, sql, view::view},
    platform::Platform,
};
use container_engine::{EngineError, LogQuery, Stream};
use contract::{
    AppId, Fault, InstanceId, Serves,
    instance_helpers::{
        AppMetrics, GetAppMetrics, GetInstanceDetails, GetInstanceLogs, GetInstanceSecrets,
        InstanceLine, InstanceLogs, InstanceSecrets, LogStream, SqlConnection, TestSqlConnection,
    },
    instances::{self as wire, InstanceKind, Role, ServiceState},
};
use store::Snapshot;

/// Lines where nothing is said, and the most.
const USUAL_LINES: u32 = 200;
const MOST_LINES: u32 = 5_000;
/// Bytes of text in one reply.
const MOST_BYTES: usize = 1 << 20;

/// What a caller is told when the engine did not do it.
pub(in crate::kinds::instances) fn engine_fault(e: EngineError) -> Fault {
    match e {
        EngineError::Missing(_) => Fault::NotNow("its container is not there".into()),
        e => {
            tracing::warn!(error = %e, "the container engine did not do it");
            Fault::Unavailable("the container engine")
        }
    }
}

impl Platform {
    /// The instance of an app: of the kind that was named, or the only one.
    pub(crate) fn only_instance(
        &self,
        app: AppId,
        kind: Option<InstanceKind>,
    ) -> Result<(InstanceId, Snapshot<Instances>), Fault> {
        let of = |kind| self.instance_of(app, kind);
        let id = match kind {
            Some(kind) => of(kind)?,
            None => match (of(InstanceKind::Backend)?, of(InstanceKind::Market)?) {
                (Some(_), Some(_)) => {
                    return Err(Fault::invalid("kind", "is needed: the app has two instances"));
                }
                (backend, market) => backend.or(market),
            },
        };
        let id = id.ok_or(Fault::NotFound("instance of this app"))?;
        let found = self.world.store.get::<Instances>(&id)?;
        Ok((id, found.ok_or(Fault::NotFound("instance of this app"))?))
    }
}

/// Why something cannot be asked of an instance that does not run.
pub(crate) fn not_running(instance: &Instance, what: &str) -> Fault {
    let state = format!("{:?}", instance.state).to_lowercase();
    Fault::NotNow(format!("this instance is {state}, and its {what} does not run; start it first"))
}

impl Serves<GetInstanceDetails> for Platform {
    async fn serve(&self, _: &Call, p: GetInstanceDetails) -> Result<wire::Instance, Fault> {
        let (id, seen) = self.only_instance(p.app_id, p.kind)?;
        Ok(view(&self.world, id, &seen.state))
    }
}

impl Serves<GetInstanceLogs> for Platform {
    async fn serve(&self, _: &Call, p: GetInstanceLogs) -> Result<InstanceLogs, Fault> {
        let tail = p.tail.unwrap_or(USUAL_LINES);
        if !(1..=MOST_LINES).contains(&tail) {
            return Err(Fault::invalid("tail", format!("must be from 1 to {MOST_LINES}")));
        }
        let (id, seen) = self.only_instance(p.app_id, p.kind)?;
        let instance = &seen.state;
        if p.service.is_some_and(|role| instance.part(role).is_none()) {
            return Err(Fault::NotFound("service of this instance"));
        }
        let stream = match p.stream {
            Some(LogStream::Stdout) => Some(Stream::Out),
            Some(LogStream::Stderr) => Some(Stream::Err),
            Some(LogStream::All) | None => None,
        };
        // One more than is asked for says whether there is more.
        let query = LogQuery { tail: tail + 1, since: p.since, stream };
        let mut lines = Vec::new();
        let wanted = |role: Role| p.service.is_none_or(|only| only == role);
        for part in instance.parts.iter().filter(|part| wanted(part.role())) {
            let name = names::container(id, part.role(), part.live.generation);
            let found = match self.world.ports.engine.logs(&name, query).await {
                Ok(found) => found,
                // Never made, or gone: it says nothing.
                Err(EngineError::Missing(_)) => continue,
                Err(e) => return Err(engine_fault(e)),
            };
            lines.extend(found.into_iter().map(|line| InstanceLine {
                at: line.at,
                service: part.role(),
                stream: match line.stream {
                    Stream::Out => LogStream::Stdout,
                    Stream::Err => LogStream::Stderr,
                },
                text: line.text,
            }));
        }
        lines.sort_by_key(|line| line.at);
        Ok(last(lines, tail as usize))
    }
}

/// The last lines, within the limits of a reply.
fn last(mut lines: Vec<InstanceLine>, tail: usize) -> InstanceLogs {
    let (mut bytes, mut kept) = (0, 0);
    for line in lines.iter().rev().take(tail) {
        bytes += line.text.len();
        if bytes > MOST_BYTES {
            break;
        }
        kept += 1;
    }
    let dropped = lines.len() - kept;
    InstanceLogs { lines: lines.split_off(dropped), truncated: dropped > 0 }
}

impl Serves<GetAppMetrics> for Platform {
    async fn serve(&self, _: &Call, p: GetAppMetrics) -> Result<AppMetrics, Fault> {
        let (id, seen) = self.only_instance(p.app_id, p.kind)?;
        let instance = &seen.state;
        let metrics = metrics::current(&self.world, id, instance).await?;
        let counts = match instance.kind {
            InstanceKind::Backend => self.count_users(id, instance).await,
            InstanceKind::Market => {
                Err("market servers do not say how many users they have".into())
            }
        };
        let (user_count, session_count, counts_unavailable) = match counts {
            Ok((users, sessions)) => (Some(users), Some(sessions), None),
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

impl Serves<TestSqlConnection> for Platform {
    async fn serve(&self, _: &Call, p: TestSqlConnection) -> Result<SqlConnection, Fault> {
        let (id, seen) = self.only_instance(p.app_id, p.kind)?;
        let instance = &seen.state;
        let part = instance.part(Role::SqlDb);
        let (part, database) = part
            .and_then(|part| Some((part, part.live.service().database.as_ref()?)))
            .ok_or_else(|| Fault::NotNow("this instance has no SQL database".into()))?;
        if part.live.state != ServiceState::Running {
            return Err(not_running(instance, "SQL database"));
        }
        let name = database.password_secret.as_ref().map(|name| name.as_str());
        let password =
            name.map(|name| container_spec::secret(&self.world.ports.sealer, id, instance, name));
        let password = password.transpose().map_err(sealed_fault)?.flatten();
        let login = sql::Login {
            user: database.user.as_str(),
            password: password.as_deref().unwrap_or_default(),
            database: p.database.as_ref().unwrap_or(&database.name).as_str(),
        };
        let name = names::container(id, Role::SqlDb, part.live.generation);
        sql::test(self.world.ports.engine.as_ref(), &name, &login).await.map_err(engine_fault)
    }
}

impl Serves<GetInstanceSecrets> for Platform {
    async fn serve(&self, cx: &Call, p: GetInstanceSecrets) -> Result<InstanceSecrets, Fault> {
        let (id, seen) = self.only_instance(p.app_id, p.kind)?;
        let owner = id.to_string();
        let sealer = &self.world.ports.sealer;
        let secrets = container_spec::open_all(sealer, &owner, &seen.state.secrets);
        cx.note(&self.world, &owner);
        Ok(InstanceSecrets { secrets: secrets.map_err(sealed_fault)? })
    }
}

pub(in crate::kinds::instances) fn sealed_fault(e: crate::ports::sealed::SealError) -> Fault {
    tracing::error!(error = %e, "the secrets of an instance cannot be opened");
    Fault::Internal
}
