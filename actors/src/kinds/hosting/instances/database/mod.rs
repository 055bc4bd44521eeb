//! Dumps and restores the database of an instance, with the tools in its container.
//!
//! A dump counts only if its tool exited with code 0, all of it is written and hashed, and it ends
//! as a complete dump does. A restore may run twice: it replaces everything that is in the database.

mod tools;

use super::{Instance, Service, secret};
use crate::{
    kinds::world::World,
    ports::{
        NotDone,
        dumps::{DumpError, Written},
    },
};
use bytes::Bytes;
use container_engine::{Engine, EngineError, Output};
use contract::{
    BackupId, InstanceId, Sha256,
    backups::BackupKind,
    instances::Role,
    quotas::Unit,
    templates::{Database, DatabaseEngine},
};
use futures_util::{StreamExt, stream, stream::BoxStream};
use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
pub use tools::TAIL;
use tools::{SQL_AFTER, SQL_BEFORE, is_whole};

/// How long a dump or a restore may take.
pub const WITHIN: Duration = Duration::from_secs(3600);
/// Bytes of a tool's error output that are kept.
const COMPLAINTS: usize = 2_000;

/// The service whose database a backup of this kind contains.
pub fn role(kind: BackupKind) -> Role {
    match kind {
        BackupKind::DocumentDb => Role::DocumentDb,
        BackupKind::SqlDb => Role::SqlDb,
    }
}

/// A database that runs in this container.
pub struct RunningDatabase {
    engine: Arc<dyn Engine>,
    container: String,
    database: Database,
    password: Option<String>,
}

impl RunningDatabase {
    /// The database of a service, in a container of this name. Fails if the template does not
    /// describe the database, or a secret cannot be opened.
    pub fn of(
        world: &World,
        id: InstanceId,
        instance: &Instance,
        service: &Service,
        container: String,
    ) -> Result<RunningDatabase, String> {
        let database = service.live.template().database.clone();
        let database = database.ok_or("the template does not say what is in the database")?;
        let password = match &database.password_secret {
            Some(name) => secret(&world.ports.sealer, id, instance, name.as_str())
                .map_err(|e| e.to_string())?,
            None => None,
        };
        let engine = world.host(instance.engine).map_err(|e| e.to_string())?.engine.clone();
        Ok(RunningDatabase { engine, container, database, password })
    }

    /// Writes the content of the database as this backup, whose file may have `most` bytes. Returns the size
    /// of the file in bytes and its hash.
    pub async fn dump(
        &self,
        id: BackupId,
        most: u64,
        world: &World,
    ) -> Result<(u64, Sha256), NotDone> {
        let exec = tools::dump(&self.database, self.password.as_deref(), WITHIN);
        let tool = exec.command.iter().find(|word| word.contains("dump")).cloned();
        let output = self.engine.exec(&self.container, exec, None).await?;
        let complaints = Complaints::default();
        let plain = bytes_of(output, tool.unwrap_or_default(), complaints.clone());
        let _working_copy = world.ports.dumps.working_copy(id);
        let written = world.ports.dumps.write(id, most, plain).await;
        let Written { size, sha256, head, tail } = written.map_err(|e| {
            NotDone::Refused(match e {
                DumpError::Source(why) => complaints.with(why),
                DumpError::TooLarge => format!(
                    "it is larger than the {} that the quota backupBytes has left; delete other backups of \
                     this organization first",
                    Unit::Bytes.say(&most)
                ),
                DumpError::Disk(why) => format!("it cannot be written: {why}"),
            })
        })?;
        is_whole(self.database.engine, &head, &tail).map_err(NotDone::Refused)?;
        let kept = world.ports.dumps.keep(id, &sha256).await;
        kept.map_err(|e| NotDone::Unreachable(e.to_string()))?;
        Ok((size, sha256))
    }

    /// Replaces the content of the database by this backup, whose file has this hash.
    pub async fn restore(
        &self,
        id: BackupId,
        sha256: &Sha256,
        world: &World,
    ) -> Result<(), NotDone> {
        // The hash of the whole file is checked before its first byte is used.
        let plain = world.ports.dumps.read(id, sha256).await;
        let plain = plain.map_err(|e| NotDone::Refused(e.to_string()))?;
        let exec = tools::restore(&self.database, self.password.as_deref(), WITHIN);
        let tool = exec.command.iter().find(|w| *w == "psql" || *w == "mongorestore").cloned();
        let input = input_of(self.database.engine, plain);
        let output = self.engine.exec(&self.container, exec, Some(input)).await?;
        end_of(output, &tool.unwrap_or_default()).await.map_err(NotDone::Refused)
    }
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

/// Reads the output of a restore to its end.
async fn end_of(
    mut output: BoxStream<'static, Result<Output, EngineError>>,
    tool: &str,
) -> Result<(), String> {
    let complaints = Complaints::default();
    while let Some(part) = output.next().await {
        match part {
            Ok(Output::Out(_)) => {}
            Ok(Output::Err(bytes)) => complaints.add(&bytes),
            Ok(Output::Exit(0)) => return Ok(()),
            Ok(Output::Exit(code)) => return Err(complaints.with(ended(tool, code))),
            Err(e) => return Err(complaints.with(e.to_string())),
        }
    }
    Err(complaints.with(format!("the output of {tool} was cut off")))
}
