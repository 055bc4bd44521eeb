//! Performs the effects of a backup.

use super::{
    dump::{self, SQL_AFTER, SQL_BEFORE, is_whole},
    restore_check,
    rules::{BackupIndex, Backups, Effect, Outcome, State, WITHIN},
    schedule,
};
use crate::{
    kinds::instances::{Instance, Instances, Service, names, secret},
    ports::{DumpError, Written},
    runtime::{
        resource::{Kept, Retry},
        store::Store,
    },
    world::World,
};
use bytes::Bytes;
use container_engine::{EngineError, Exec, Output};
use contract::{
    BackupId, Fault, InstanceId,
    backups::{Backup, BackupKind},
    instances::{Role, ServiceState},
    templates::{Database, DatabaseEngine},
};
use futures_util::{StreamExt, stream, stream::BoxStream};
use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};
use store::Snapshot;

/// Backups that are verified at the same time. Each takes the memory of a database and a network.
const VERIFIED_AT_A_TIME: usize = 2;
/// Bytes of a tool's error output that are kept.
const COMPLAINTS: usize = 2_000;

pub(super) async fn perform(
    effect: Effect,
    id: BackupId,
    kept: Arc<Kept<Backups>>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    match effect {
        Effect::Dump => write(id, &kept.state, &world).await,
        Effect::Restore => match running(&kept.state, &world)? {
            Ok(database) => put_into(&database, id, &kept.state, &world).await,
            Err(why) => Ok(Outcome::Failed(why)),
        },
        Effect::Verify => verify(id, &kept.state, &world).await,
        Effect::Dispose => {
            restore_check::dispose(id, &world).await?;
            Ok(Outcome::Disposed)
        }
        Effect::Thin => {
            schedule::apply_retention(&world, &kept.state).await?;
            Ok(Outcome::Thinned)
        }
        Effect::Clean | Effect::Discard => {
            world.ports.dumps.discard(id).await?;
            Ok(Outcome::Discarded)
        }
    }
}

pub fn role(kind: BackupKind) -> Role {
    match kind {
        BackupKind::DocumentDb => Role::DocumentDb,
        BackupKind::SqlDb => Role::SqlDb,
    }
}

pub(super) const DELETED: &str = "the instance was deleted";

/// The instance of a backup, unless it is deleted.
pub(super) fn instance_of(
    backup: &Backup,
    store: &Store,
) -> Result<Option<Snapshot<Instances>>, Fault> {
    let found = store.get::<Instances>(&backup.instance_id)?;
    Ok(found.filter(|found| !found.is_deleted()))
}

pub(super) struct Running {
    container: String,
    database: Database,
    password: Option<String>,
}

impl Running {
    /// Fails if the template does not describe the database, or a secret cannot be opened.
    pub fn of(
        world: &World,
        id: InstanceId,
        instance: &Instance,
        service: &Service,
        container: String,
    ) -> Result<Running, String> {
        let database = service.live.template().database.clone();
        let database = database.ok_or("the template does not say what is in the database")?;
        let password = match &database.password_secret {
            Some(name) => secret(&world.ports.sealer, id, instance, name.as_str())
                .map_err(|e| e.to_string())?,
            None => None,
        };
        Ok(Running { container, database, password })
    }
}

/// The database of a backup, or the reason why there is none to dump or restore.
fn running(state: &State, world: &World) -> Result<Result<Running, String>, Retry> {
    let backup = &state.backup;
    let Some(found) = instance_of(backup, &world.store)? else { return Ok(Err(DELETED.into())) };
    let (instance, role) = (&found.state, role(backup.kind));
    let service =
        instance.service(role).filter(|service| service.live.state == ServiceState::Running);
    let Some(service) = service else { return Ok(Err("the database does not run".into())) };
    let container = names::container(backup.instance_id, role, service.live.generation);
    Ok(Running::of(world, backup.instance_id, instance, service, container))
}

async fn write(id: BackupId, state: &State, world: &World) -> Result<Outcome, Retry> {
    let Running { container, database, password } = match running(state, world)? {
        Ok(running) => running,
        Err(why) => return Ok(Outcome::Failed(why)),
    };
    let exec = dump::dump(&database, password.as_deref(), WITHIN);
    let tool = exec.command.iter().find(|word| word.contains("dump")).cloned().unwrap_or_default();
    let output = match world.ports.engine.exec(&container, exec, None).await {
        Ok(output) => output,
        Err(EngineError::Unreachable(why)) => return Err(Retry(why)),
        Err(e) => return Ok(Outcome::Failed(e.to_string())),
    };
    let complaints = Complaints::default();
    let written = world.ports.dumps.write(id, bytes_of(output, tool, complaints.clone())).await;
    let Written { size, sha256, head, tail } = match written {
        Ok(written) => written,
        Err(DumpError::Source(why)) => return Ok(Outcome::Failed(complaints.with(why))),
        Err(DumpError::Disk(why)) => {
            return Ok(Outcome::Failed(format!("it cannot be written: {why}")));
        }
    };
    if let Err(why) = is_whole(database.engine, &head, &tail) {
        return Ok(Outcome::Failed(why));
    }
    world.ports.dumps.keep(id).await?;
    Ok(Outcome::Dumped(size, sha256))
}

/// The end of what a tool wrote to its standard error.
#[derive(Clone, Default)]
struct Complaints(Arc<Mutex<String>>);

impl Complaints {
    fn add(&self, bytes: &[u8]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_str(&String::from_utf8_lossy(bytes));
        let from = all.len().saturating_sub(COMPLAINTS);
        let from = (from..all.len()).find(|at| all.is_char_boundary(*at)).unwrap_or(0);
        all.drain(..from);
    }

    fn with(&self, why: String) -> String {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let said = all.trim();
        if said.is_empty() { why } else { format!("{why}: {said}") }
    }
}

/// The bytes of a dump. The stream ends without an error only if the tool exited with code 0.
fn bytes_of(
    output: BoxStream<'static, Result<Output, EngineError>>,
    tool: String,
    complaints: Complaints,
) -> BoxStream<'static, io::Result<Bytes>> {
    let next = move |output: Option<BoxStream<'static, Result<Output, EngineError>>>| {
        let (tool, complaints) = (tool.clone(), complaints.clone());
        async move {
            let mut output = output?;
            loop {
                let failed = match output.next().await {
                    Some(Ok(Output::Out(bytes))) => return Some((Ok(bytes), Some(output))),
                    Some(Ok(Output::Err(bytes))) => {
                        complaints.add(&bytes);
                        continue;
                    }
                    Some(Ok(Output::Exit(0))) => return None,
                    Some(Ok(Output::Exit(code))) => ended(&tool, code),
                    Some(Err(e)) => e.to_string(),
                    None => format!("the output of {tool} was cut off"),
                };
                return Some((Err(io::Error::other(failed)), None));
            }
        }
    };
    stream::unfold(Some(output), next).boxed()
}

fn ended(tool: &str, code: i64) -> String {
    match code {
        126 | 127 => format!("the database's image has no {tool}"),
        124 => format!("{tool} was not done in time"),
        137 => format!("{tool} was killed"),
        code => format!("{tool} failed with code {code}"),
    }
}

/// Restores a backup into an empty database. A failure is tried once more in a new database: its
/// cause may be the start of the database and not the backup.
async fn verify(id: BackupId, state: &State, world: &World) -> Result<Outcome, Retry> {
    let first = world.store.oldest(&BackupIndex::Verifying, None, VERIFIED_AT_A_TIME)?;
    if !first.contains(&id) {
        return Ok(Outcome::Wait);
    }
    let mut again = true;
    loop {
        let database = match restore_check::begin(id, &state.backup, world).await? {
            Ok(database) => database,
            Err(why) => return Ok(Outcome::Unverified(why)),
        };
        match put_into(&database, id, state, world).await? {
            Outcome::Failed(_) if again => again = false,
            done => return Ok(done),
        }
    }
}

async fn put_into(
    Running { container, database, password }: &Running,
    id: BackupId,
    state: &State,
    world: &World,
) -> Result<Outcome, Retry> {
    let Some(sha256) = &state.backup.sha256 else {
        return Ok(Outcome::Failed("the backup is not ready".into()));
    };
    // The hash of the whole file is checked before its first byte is used.
    let plain = match world.ports.dumps.read(id, sha256).await {
        Ok(plain) => plain,
        Err(e) => return Ok(Outcome::Failed(e.to_string())),
    };
    let exec = dump::restore(database, password.as_deref(), WITHIN);
    let tool = exec.command.iter().find(|w| *w == "psql" || *w == "mongorestore").cloned();
    let input = input_of(database.engine, plain);
    run(world, container, exec, input, &tool.unwrap_or_default()).await
}

/// The input of a restore. A read error ends it early: without its last line, an SQL restore
/// changes nothing.
fn input_of(
    engine: DatabaseEngine,
    plain: BoxStream<'static, io::Result<Bytes>>,
) -> BoxStream<'static, Bytes> {
    let whole = |part: io::Result<Bytes>| async move { part.ok() };
    let (before, after) = match engine {
        DatabaseEngine::Postgresql => (SQL_BEFORE, SQL_AFTER),
        DatabaseEngine::Mongodb => ("", ""),
    };
    let once = |text: &'static str| stream::iter([Ok(Bytes::from_static(text.as_bytes()))]);
    let all = once(before).chain(plain).chain(once(after));
    let parts = all.scan((), move |(), part| whole(part));
    parts.filter(|part| std::future::ready(!part.is_empty())).boxed()
}

async fn run(
    world: &World,
    container: &str,
    exec: Exec,
    input: BoxStream<'static, Bytes>,
    tool: &str,
) -> Result<Outcome, Retry> {
    let mut output = match world.ports.engine.exec(container, exec, Some(input)).await {
        Ok(output) => output,
        Err(EngineError::Unreachable(why)) => return Err(Retry(why)),
        Err(e) => return Ok(Outcome::Failed(e.to_string())),
    };
    let complaints = Complaints::default();
    while let Some(part) = output.next().await {
        match part {
            Ok(Output::Out(_)) => {}
            Ok(Output::Err(bytes)) => complaints.add(&bytes),
            Ok(Output::Exit(0)) => return Ok(Outcome::Restored),
            Ok(Output::Exit(code)) => {
                return Ok(Outcome::Failed(complaints.with(ended(tool, code))));
            }
            Err(e) => return Ok(Outcome::Failed(complaints.with(e.to_string()))),
        }
    }
    Ok(Outcome::Failed(complaints.with(format!("the output of {tool} was cut off"))))
}
