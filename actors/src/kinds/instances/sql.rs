//! Trying the connection to an SQL database, from inside of its network: which step fails first, and
//! what to do about it.

use container_engine::{Engine, EngineError, Exec, Output};
use contract::instance_helpers::{SqlConnection, SqlStep, SqlStepName};
use futures_util::StreamExt;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Who connects to what.
pub(super) struct Login<'a> {
    pub user: &'a str,
    pub password: &'a str,
    pub database: &'a str,
}

/// How long one step may take.
const WITHIN: Duration = Duration::from_secs(8);
/// Bytes of output that are looked at.
const MOST_OUTPUT: usize = 64 << 10;
/// What the instance's other services call it.
const HOST: &str = "sqldb";

/// What a program said.
struct Said {
    code: i64,
    out: String,
    err: String,
}

async fn run(
    engine: &dyn Engine,
    container: &str,
    login: &Login<'_>,
    command: &[&str],
) -> Result<Said, EngineError> {
    let env = BTreeMap::from([
        ("PGPASSWORD".to_owned(), login.password.to_owned()),
        ("PGCONNECT_TIMEOUT".to_owned(), "5".to_owned()),
    ]);
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    let exec = Exec { command, env, user: None, within: WITHIN };
    let mut output = engine.exec(container, exec, None).await?;
    let (mut out, mut err, mut code) = (Vec::new(), Vec::new(), None);
    while let Some(piece) = output.next().await {
        match piece? {
            Output::Out(bytes) if out.len() < MOST_OUTPUT => out.extend_from_slice(&bytes),
            Output::Err(bytes) if err.len() < MOST_OUTPUT => err.extend_from_slice(&bytes),
            Output::Out(_) | Output::Err(_) => {}
            Output::Exit(with) => code = Some(with),
        }
    }
    let code = code.ok_or_else(|| EngineError::Away("a program's end was not seen".into()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    Ok(Said { code, out: text(&out), err: text(&err) })
}

/// Tries it step by step; the first that fails says why.
pub(super) async fn test(
    engine: &dyn Engine,
    container: &str,
    login: &Login<'_>,
) -> Result<SqlConnection, EngineError> {
    let begun = Instant::now();
    let mut found = SqlConnection {
        ok: false,
        latency_ms: 0.0,
        server_version: None,
        databases: None,
        steps: Vec::new(),
        error: None,
        hint: None,
    };
    let connect = ["psql", "-h", HOST, "-U", login.user, "-d", login.database, "-XAtw", "-c"];
    let query = |sql: &'static str| [&connect[..], &[sql]].concat();
    let steps: [(SqlStepName, Vec<&str>); 4] = [
        (SqlStepName::Resolve, vec!["getent", "hosts", HOST]),
        (SqlStepName::Connect, vec!["pg_isready", "-h", HOST, "-t", "5"]),
        (SqlStepName::Authenticate, query("select current_setting('server_version')")),
        (
            SqlStepName::Query,
            query("select datname from pg_database where not datistemplate order by 1"),
        ),
    ];
    for (name, command) in steps {
        let step = Instant::now();
        let said = run(engine, container, login, &command).await?;
        // Which database is meant is looked at only once the password was found right.
        let let_in = name == SqlStepName::Authenticate && said.err.contains("database \"");
        if let_in && said.code != 0 {
            found.steps.push(SqlStep { name, ok: true, latency_ms: millis(step.elapsed()) });
            continue;
        }
        let ok = said.code == 0;
        found.steps.push(SqlStep { name, ok, latency_ms: millis(step.elapsed()) });
        match name {
            SqlStepName::Authenticate if ok => found.server_version = Some(said.out),
            SqlStepName::Query if ok => {
                found.databases = Some(said.out.lines().map(str::to_owned).collect());
            }
            _ if ok => {}
            _ => {
                let (error, hint) = explain(name, &said);
                (found.error, found.hint) = (Some(error), Some(hint));
                found.latency_ms = millis(begun.elapsed());
                return Ok(found);
            }
        }
    }
    found.ok = true;
    found.latency_ms = millis(begun.elapsed());
    Ok(found)
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}

/// What went wrong, and what to do about it.
fn explain(step: SqlStepName, said: &Said) -> (String, String) {
    let text = if said.err.is_empty() { &said.out } else { &said.err };
    let error = match said.code {
        126 | 127 => format!("the database's image has no {}", tool(step)),
        124 | 137 => "it gave no answer in time".to_owned(),
        _ => {
            text.lines().last().unwrap_or("it failed and said nothing").chars().take(300).collect()
        }
    };
    let hint = match step {
        _ if matches!(said.code, 126 | 127) => "use an image that has PostgreSQL's client tools",
        SqlStepName::Resolve => {
            "the instance's network does not know its database: restart the instance"
        }
        SqlStepName::Connect => {
            "the database does not take connections: it may still be starting; see its log with svc_getInstanceLogs"
        }
        _ if text.contains("password authentication failed") => {
            "the database has another password than the instance: it was changed inside of the database"
        }
        _ if text.contains("does not exist") => {
            "there is no such database or role: look at the databases that the test without `database` lists"
        }
        _ if text.contains("too many clients") || text.contains("remaining connection slots") => {
            "all connections are taken: look for connections that the server never gives back"
        }
        _ => "see the database's log with svc_getInstanceLogs",
    };
    (error, hint.to_owned())
}

fn tool(step: SqlStepName) -> &'static str {
    match step {
        SqlStepName::Resolve => "getent",
        SqlStepName::Connect => "pg_isready",
        SqlStepName::Authenticate | SqlStepName::Query => "psql",
    }
}
