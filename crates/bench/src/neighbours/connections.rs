//! Half-sent heads and unfinished forms from one address.

use super::{Tenants, start};
use crate::{
    Pace, machine,
    outcome::{Explain, Outcome},
    server::Server,
    table::Row,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{io::Write, net::TcpStream};

const HALF_OPEN: usize = 2_100;
const FORMS: usize = 1_500;
/// The bytes of a form that arrive, and those that it announces.
const ARRIVE: usize = 200 << 10;
const ANNOUNCED: usize = 250_000;
const MOST_MEMORY: u64 = 100_000_000;

pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let limit = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit }).or_say("open files")?;
    let mut rows = Vec::new();
    for flood in FLOODS {
        // Each has a service of its own, so that none gets the memory that another one left.
        let home = machine::scratch()?;
        let server = start(home.path(), pace, &[])?;
        let Tenants { attacker, visitor } = Tenants::register(&server)?;
        server.stop()?;
        // Signing in takes much memory for a moment, which would hide that of the connections.
        let server = start(home.path(), pace, &[])?;
        let bytes = flood.bytes(&server, &attacker);
        let beside = visitor.beside(&server, pace, |signal| {
            let open = flood.open(&server, &bytes)?;
            signal.begin();
            signal.wait();
            drop(open);
            Ok(())
        })?;
        let name = format!("{} {}", flood.connections, flood.name);
        rows.extend(beside.rows(&name));
        rows.push(beside.memory(&name, MOST_MEMORY));
    }
    Ok(rows)
}

/// Connections that begin a request.
struct Flood {
    name: &'static str,
    connections: usize,
    begins: Begins,
}

enum Begins {
    Head,
    /// A form for this path, of this type, that begins so.
    Form {
        path: &'static str,
        kind: &'static str,
        begins: &'static str,
        is_signed_in: bool,
    },
}

const URLENCODED: &str = "application/x-www-form-urlencoded";
const FLOODS: [Flood; 4] = [
    Flood { name: "half-sent heads", connections: HALF_OPEN, begins: Begins::Head },
    Flood {
        name: "unfinished forms",
        connections: FORMS,
        begins: Begins::Form {
            path: "/sign-in",
            kind: URLENCODED,
            begins: "",
            is_signed_in: false,
        },
    },
    Flood {
        name: "unfinished forms of a session",
        connections: FORMS,
        begins: Begins::Form {
            path: "/organizations",
            kind: URLENCODED,
            begins: "",
            is_signed_in: true,
        },
    },
    Flood {
        name: "unfinished files",
        connections: FORMS,
        begins: Begins::Form {
            path: "/apps/app_01J9ZQ8F5W7V3T6M2K4N8R0P1S/credentials",
            kind: "multipart/form-data; boundary=x",
            begins: "--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a\"\r\n\r\n",
            is_signed_in: false,
        },
    },
];

impl Flood {
    /// What each connection sends.
    fn bytes(&self, server: &Server, session: &str) -> Vec<u8> {
        let [(_, host), (_, cookie)] = server.signed_in(session);
        let Begins::Form { path, kind, begins, is_signed_in } = self.begins else {
            return format!("GET / HTTP/1.1\r\nHost: {host}\r\nX-").into_bytes();
        };
        let cookie = if is_signed_in { format!("Cookie: {cookie}\r\n") } else { String::new() };
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nSec-Fetch-Site: \
             same-origin\r\nContent-Type: {kind}\r\nContent-Length: {ANNOUNCED}\r\n{cookie}\r\n\
             {begins}"
        );
        [head.into_bytes(), vec![b'a'; ARRIVE]].concat()
    }

    fn open(&self, server: &Server, bytes: &[u8]) -> Outcome<Vec<TcpStream>> {
        let open = (0..self.connections).map(|_| {
            let mut stream = TcpStream::connect(server.dashboard).or_say("the dashboard")?;
            // The service may have closed the connection, or take no more.
            stream.set_nonblocking(true).or_say("the dashboard")?;
            let _ = stream.write(bytes);
            Ok(stream)
        });
        open.collect()
    }
}
