//! Runs programs in running containers.

mod ending;
mod kill;

use super::{
    body::whole_seconds,
    containers,
    daemon::{CHANGE, Daemon, LOOK},
    errors::DaemonFailure,
    produce::produce,
    view,
};
use crate::{Container, EngineError, Exec, Output};
use bollard::{
    container::LogOutput,
    exec::{CreateExecOptions, StartExecOptions, StartExecResults},
};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use ending::Marked;
use futures_core::{Stream, stream::BoxStream};
use futures_util::{
    StreamExt,
    future::{Either, select},
};
use kill::Program;
use std::{pin::Pin, pin::pin, time::Duration};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    runtime::Handle,
    sync::mpsc::Sender,
    time::{Instant, sleep, timeout_at},
};

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;
/// A program is killed within ten seconds of its limit; the rest is for the daemon to report it.
const SLACK: Duration = Duration::from_secs(40);
/// No program is waited for longer: the sum with an `Instant` must not overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How often the daemon is asked whether a program has ended, and the pause in between.
const LOOKS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(250);

type Reads = Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;
type Writes = Pin<Box<dyn AsyncWrite + Send>>;
type Sends = Sender<Result<Output, EngineError>>;

pub(super) async fn exec(
    daemon: &Daemon,
    name: &str,
    exec: Exec,
    input: Option<BoxStream<'static, Bytes>>,
) -> Result<BoxStream<'static, Result<Output, EngineError>>, EngineError> {
    let about = |failure: DaemonFailure| failure.about(format_args!("container {name}"));
    let Some(container) = containers::inspect(daemon, name)
        .await?
        .map(|found| view::container(found, daemon.publishes_at))
    else {
        return Err(EngineError::Missing(format!("container {name}")));
    };
    let marker = format!("SVC_EXEC={}", secret()?);
    let secret = secret()?;
    let seconds = whole_seconds(exec.within).max(1).to_string();
    let script = if input.is_some() { ending::WITH_INPUT } else { ending::WITHOUT_INPUT };
    let wrapper = ["sh", "-c", script, "sh", &secret, &seconds].map(str::to_owned);
    let environment = exec.env.iter().map(|(name, value)| format!("{name}={value}"));
    let options = CreateExecOptions {
        cmd: Some(wrapper.into_iter().chain(exec.command).collect()),
        env: Some(environment.chain([marker.clone()]).collect()),
        user: exec.user.clone(),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        ..CreateExecOptions::default()
    };
    let id = &container.id;
    let made = daemon.ask(LOOK, |client| async move { client.create_exec(id, options).await });
    let made = made.await.map_err(about)?.id;
    // From here on the program may run, even if this future is dropped.
    let program = Program {
        daemon: daemon.clone(),
        container: container.id.clone(),
        user: exec.user,
        marker,
        runtime: Handle::current(),
        runs: true,
    };
    let attached = StartExecOptions { output_capacity: Some(CHUNK), ..StartExecOptions::default() };
    let exec_id = &made;
    let started = daemon
        .ask(CHANGE, |client| async move { client.start_exec(exec_id, Some(attached)).await })
        .await
        .map_err(about)?;
    let StartExecResults::Attached { output, input: writes } = started else {
        return Err(EngineError::Unreachable("it gave no connection to the program".to_owned()));
    };
    let run = ExecRun {
        out: Marked::new(&secret),
        err: Marked::new(&secret),
        until: Instant::now() + exec.within.min(LONGEST) + SLACK,
        program,
        exec: made,
        container,
    };
    Ok(produce(|sends| run.drive(output, writes, input, sends)))
}

/// A value that nobody can guess.
pub(super) fn secret() -> Result<String, EngineError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|e| EngineError::Unreachable(format!("the system gives no random bytes: {e}")))?;
    Ok(HEXLOWER.encode(&bytes))
}

struct ExecRun {
    out: Marked,
    err: Marked,
    until: Instant,
    program: Program,
    exec: String,
    /// As inspected before the start.
    container: Container,
}

impl ExecRun {
    async fn drive(
        mut self,
        output: Reads,
        writes: Writes,
        input: Option<BoxStream<'static, Bytes>>,
        sends: Sends,
    ) {
        let end = match input {
            None => {
                let end = self.read(output, &sends).await;
                if end.is_ok() {
                    // Closing the connection tells the shell that the marks have arrived.
                    drop(writes);
                    self.program.runs = false;
                }
                end
            }
            Some(input) => {
                // Both at once: the program may write before it has read everything, and the
                // reverse.
                let reading = pin!(self.read(output, &sends));
                match select(reading, pin!(write(input, writes))).await {
                    Either::Left((end, _)) => end,
                    Either::Right((_writes, reading)) => reading.await,
                }
            }
        };
        let last = match end {
            Ok(code) => Ok(Output::Exit(code)),
            Err(Some(error)) => Err(error),
            Err(None) => self.without_mark(&sends).await,
        };
        let _ = sends.send(last).await;
    }

    /// Reads until both streams are marked, and returns the exit code. `None`: they ended unmarked.
    async fn read(&mut self, mut output: Reads, sends: &Sends) -> Result<i64, Option<EngineError>> {
        loop {
            // The limit may have passed while the output waited for the receiver.
            let until = self.until.max(Instant::now() + LOOK);
            let Ok(part) = timeout_at(until, output.next()).await else {
                return Err(Some(self.cut_off("it did not end in its time")));
            };
            let item = match part {
                Some(Ok(LogOutput::StdOut { message })) => Output::Out(self.out.feed(message)),
                Some(Ok(LogOutput::StdErr { message })) => Output::Err(self.err.feed(message)),
                // Bollard makes this of half a frame.
                Some(Ok(LogOutput::Console { .. } | LogOutput::StdIn { .. })) => {
                    return Err(Some(self.cut_off("half a frame came")));
                }
                Some(Err(error)) => {
                    return Err(Some(self.cut_off(&format!("{:?}", DaemonFailure::from(error)))));
                }
                None => return Err(None),
            };
            let is_empty =
                matches!(&item, Output::Out(bytes) | Output::Err(bytes) if bytes.is_empty());
            if !is_empty {
                // The receiver is gone: the task is about to be aborted.
                sends.send(Ok(item)).await.map_err(|_| None)?;
            }
            if let (Some(code), Some(_)) = (self.out.code(), self.err.code()) {
                return Ok(code);
            }
        }
    }

    /// The streams ended without marks: the container has no shell, or output was lost.
    async fn without_mark(&mut self, sends: &Sends) -> Result<Output, EngineError> {
        for item in [Output::Out(self.out.rest()), Output::Err(self.err.rest())] {
            if !matches!(&item, Output::Out(bytes) | Output::Err(bytes) if bytes.is_empty()) {
                let _ = sends.send(Ok(item)).await;
            }
        }
        let exec = &self.exec;
        for _ in 0..LOOKS {
            let daemon = &self.program.daemon;
            let found = daemon
                .ask(LOOK, |client| async move { client.inspect_exec(exec).await })
                .await
                .map_err(|failure| self.cut_off(&format!("{failure:?}")))?;
            if found.running == Some(true) || found.exit_code.is_none() {
                #[allow(clippy::disallowed_methods, reason = "another program is waited for")]
                sleep(PAUSE).await;
                continue;
            }
            return match found.exit_code {
                // The program could not be started; its standard output says why.
                Some(code @ (126 | 127)) if found.pid.is_none_or(|process| process == 0) => {
                    self.program.runs = false;
                    Ok(Output::Exit(code))
                }
                code => Err(self.cut_off(&format!("the daemon says that it ended with {code:?}"))),
            };
        }
        Err(self.cut_off("the daemon says that it goes on"))
    }

    fn cut_off(&self, why: &str) -> EngineError {
        let name = &self.container.name;
        EngineError::Unreachable(format!("the program in the container {name} was cut off: {why}"))
    }
}

/// Writes and closes the input. Returns the connection: dropping it would end the output too.
async fn write(mut input: BoxStream<'static, Bytes>, mut writes: Writes) -> Writes {
    while let Some(bytes) = input.next().await {
        // The program may end before it has read everything.
        if writes.write_all(&bytes).await.is_err() {
            return writes;
        }
    }
    let _ = writes.shutdown().await;
    writes
}
