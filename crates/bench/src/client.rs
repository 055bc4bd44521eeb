//! A minimal client of the service, so that its own cost does not distort the measurement.

use crate::outcome::{Explain, Outcome};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use serde_json::Value;
use std::{
    fs::File,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

/// The time limit of a read.
const WITHIN: Duration = Duration::from_secs(300);

#[derive(Debug, Clone)]
pub struct Client {
    pub address: SocketAddr,
    /// The header of every call.
    pub application_id: String,
    /// The address of this machine that the service sees.
    pub from: Ipv4Addr,
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// Null if the body is not JSON.
    pub body: Value,
}

impl Response {
    /// The value at a path such as `/result/user/id`, as text.
    pub fn text(&self, path: &str) -> Outcome<&str> {
        let found = self.body.pointer(path).and_then(Value::as_str);
        found.ok_or_else(|| {
            format!("{path} is missing in the answer {}: {}", self.status, self.body)
        })
    }
}

impl Client {
    pub fn to(address: SocketAddr) -> Client {
        Client { address, application_id: String::new(), from: Ipv4Addr::LOCALHOST }
    }

    pub fn connect(&self) -> Outcome<TcpStream> {
        let stream = socket(AddressFamily::INET, SocketType::STREAM, None).or_say("a socket")?;
        if self.from != Ipv4Addr::LOCALHOST {
            bind(&stream, &SocketAddr::from((self.from, 0))).or_say(self.from)?;
        }
        connect(&stream, &self.address).or_say(self.address)?;
        Ok(stream.into())
    }

    /// Calls a function, optionally with a session. Fails if the status is not 200.
    pub fn call(&self, session: Option<&str>, function: &str, params: &Value) -> Outcome<Response> {
        let path = format!("/backend/functions/{function}");
        let answer = self.post(session, &path, params)?;
        match answer.status {
            200 => Ok(answer),
            status => Err(format!("{function} was answered {status}: {}", answer.body)),
        }
    }

    pub fn post(&self, session: Option<&str>, path: &str, body: &Value) -> Outcome<Response> {
        let mut headers = vec![
            ("Content-Type", "application/json"),
            ("X-Backend-Application-Id", self.application_id.as_str()),
        ];
        headers.extend(session.map(|token| ("X-Backend-Session-Token", token)));
        let body = body.to_string();
        self.exchange(&format!("POST {path}"), &headers, body.len() as u64, |to| {
            to.write_all(body.as_bytes())
        })
    }

    /// Reads an address. `None` if there is no answer.
    pub fn get(&self, path: &str) -> Option<Response> {
        self.exchange(&format!("GET {path}"), &[], 0, |_| Ok(())).ok()
    }

    /// The number of bytes at an address, with its head. Fails if the status is not 200.
    pub fn size(&self, path: &str, headers: &[(&str, &str)]) -> Outcome<usize> {
        let answer = self.answer(&format!("GET {path}"), headers, 0, |_| Ok(()))?;
        let ok = answer.starts_with("HTTP/1.1 200");
        ok.then_some(answer.len()).ok_or_else(|| format!("{path} was answered {answer}"))
    }

    /// Sends a whole file. The kernel copies the bytes from the file to the connection.
    pub fn put_file(&self, path: &str, file: &Path) -> Outcome<Response> {
        let mut bytes = File::open(file).or_say("the file")?;
        let length = bytes.metadata().or_say("the file")?.len();
        let headers = [("Content-Type", "application/octet-stream")];
        self.exchange(&format!("PUT {path}"), &headers, length, |to| {
            std::io::copy(&mut bytes, to).map(|_| ())
        })
    }

    fn exchange(
        &self,
        line: &str,
        headers: &[(&str, &str)],
        length: u64,
        send: impl FnOnce(&mut TcpStream) -> std::io::Result<()>,
    ) -> Outcome<Response> {
        let answer = self.answer(line, headers, length, send)?;
        let (head, body) = answer.split_once("\r\n\r\n").or_say("the answer's head")?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = serde_json::from_str(body).unwrap_or_default();
        Ok(Response { status: status.or_say("the answer's status")?, body })
    }

    /// The answer as it comes. A header `Host` replaces the address.
    fn answer(
        &self,
        line: &str,
        headers: &[(&str, &str)],
        length: u64,
        send: impl FnOnce(&mut TcpStream) -> std::io::Result<()>,
    ) -> Outcome<String> {
        let mut stream = self.connect()?;
        stream.set_read_timeout(Some(WITHIN)).or_say(line)?;
        let named = headers.iter().any(|(name, _)| *name == "Host");
        let host = if named { String::new() } else { format!("Host: {}\r\n", self.address) };
        let headers: String = headers.iter().map(|(k, v)| format!("{k}: {v}\r\n")).collect();
        let head = format!(
            "{line} HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: {length}\r\n{headers}\r\n",
        );
        stream.write_all(head.as_bytes()).or_say(line)?;
        send(&mut stream).or_say(line)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).or_say(line)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}
