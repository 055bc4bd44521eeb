//! `svc_getInstanceLogs`.

use super::{engine_fault, only_instance};
use crate::{
    call::{context::Call, platform::Platform},
    kinds::hosting::names,
};
use container_engine::{EngineError, LogQuery, Stream};
use contract::{
    Fault, Serves,
    instance_helpers::{GetInstanceLogs, InstanceLine, InstanceLogs, LogStream},
};

const DEFAULT_LINES: u32 = 200;
const MOST_LINES: u32 = 5_000;

impl Serves<GetInstanceLogs> for Platform {
    async fn serve(&self, _: &Call, p: GetInstanceLogs) -> Result<InstanceLogs, Fault> {
        let tail = p.tail.unwrap_or(DEFAULT_LINES);
        if !(1..=MOST_LINES).contains(&tail) {
            return Err(Fault::invalid("tail", format!("must be from 1 to {MOST_LINES}")));
        }
        let (id, seen) = only_instance(&self.world, p.app_id, p.kind)?;
        let instance = &seen.state;
        if p.service.is_some_and(|role| instance.service(role).is_none()) {
            return Err(Fault::NotFound("service of this instance"));
        }
        let stream = match p.stream {
            Some(LogStream::Stdout) => Some(Stream::Out),
            Some(LogStream::Stderr) => Some(Stream::Err),
            Some(LogStream::All) | None => None,
        };
        // One more line than asked for tells whether the reply is truncated.
        let query = LogQuery { tail: tail + 1, since: p.since, stream };
        let host = self.world.host(instance.engine).map_err(engine_fault)?;
        let mut lines = Vec::new();
        let asked =
            instance.services.iter().filter(|s| p.service.is_none_or(|role| role == s.role));
        for service in asked {
            let name = names::container(id, service.role, service.live.generation);
            let found = match host.engine.logs(&name, query).await {
                Ok(found) => found,
                Err(EngineError::Missing(_)) => continue,
                Err(e) => return Err(engine_fault(e)),
            };
            lines.extend(found.into_iter().map(|line| InstanceLine {
                at: line.at,
                service: service.role,
                stream: match line.stream {
                    Stream::Out => LogStream::Stdout,
                    Stream::Err => LogStream::Stderr,
                },
                text: line.text,
            }));
        }
        lines.sort_by_key(|line| line.at);
        Ok(last(lines, tail as usize, self.settings.largest_log_reply))
    }
}

/// The last lines, within the limits of a reply.
fn last(mut lines: Vec<InstanceLine>, tail: usize, most_bytes: u64) -> InstanceLogs {
    let (mut bytes, mut kept) = (0_u64, 0);
    for line in lines.iter().rev().take(tail) {
        bytes += line.text.len() as u64;
        if bytes > most_bytes {
            break;
        }
        kept += 1;
    }
    let dropped = lines.len() - kept;
    InstanceLogs { lines: lines.split_off(dropped), truncated: dropped > 0 }
}
