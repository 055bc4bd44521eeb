//! Ends programs that nobody waits for any more.
//!
//! Closing the connection does not end a program, and the daemon reports process ids of its own
//! machine, which may be another one. So each program carries a marker in its environment, and a
//! second program in the same container looks for the marker.

use crate::docker::daemon::{Daemon, LOOK};
use bollard::exec::{CreateExecOptions, StartExecOptions};
use tokio::runtime::Handle;

/// Sends TERM to all processes with the marker, and KILL to those that are left after ten seconds.
/// It looks four times before it concludes that there are none: the program may not have started
/// yet.
const SCRIPT: &str = r#"asked=' ' round=0 none=0
while [ $round -lt 30 ] && [ $none -lt 4 ]; do
  found=
  for process in /proc/[0-9]*; do
    case "$(tr '\000' '\n' <"$process/environ" 2>/dev/null)" in
      *"$1"*) ;;
      *) continue ;;
    esac
    found=1 id=${process#/proc/}
    if [ $round -ge 10 ]; then kill -KILL "$id"; continue; fi
    case "$asked" in
      *" $id "*) ;;
      *) kill -TERM "$id"; asked="$asked$id " ;;
    esac
  done 2>/dev/null
  round=$((round + 1))
  if [ -n "$found" ]; then none=0; else none=$((none + 1)); fi
  sleep 1
done"#;

/// A program in a container. Dropping this value ends the program.
pub(super) struct Program {
    pub daemon: Daemon,
    pub container: String,
    pub user: Option<String>,
    /// As it appears in the program's environment.
    pub marker: String,
    /// This value may be dropped outside of the runtime.
    pub runtime: Handle,
    /// Whether the program may still run.
    pub runs: bool,
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.runs {
            let end = end(
                self.daemon.clone(),
                self.container.clone(),
                self.user.clone(),
                self.marker.clone(),
            );
            self.runtime.spawn(end);
        }
    }
}

async fn end(daemon: Daemon, container: String, user: Option<String>, marker: String) {
    let command = ["sh", "-c", SCRIPT, "sh", &marker].map(str::to_owned).to_vec();
    let options = CreateExecOptions { cmd: Some(command), user, ..CreateExecOptions::default() };
    let made = daemon
        .ask(LOOK, |client| async move { client.create_exec(&container, options).await })
        .await;
    let answer = match made {
        Ok(exec) => {
            let detached = StartExecOptions { detach: true, ..StartExecOptions::default() };
            daemon
                .ask(LOOK, |client| async move {
                    client.start_exec(&exec.id, Some(detached)).await.map(drop)
                })
                .await
        }
        // A container that is removed or stopped runs no programs.
        Err(failure) if failure.is(404) || failure.is(409) => Ok(()),
        Err(failure) => Err(failure),
    };
    if let Err(failure) = answer {
        tracing::warn!(?failure, "a program was not ended; it runs until its time limit");
    }
}
