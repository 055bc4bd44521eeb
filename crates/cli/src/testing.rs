//! A small service for tests, which accepts uploads and fails on demand.

use crate::{
    client::Client,
    settings::{ClientCredential, ClientSettings},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::Duration,
};
use svc_client::Patience;

/// Several attempts, as in a command, but with short pauses.
pub const IMPATIENT: Patience = Patience {
    attempts: 6,
    first_pause: Duration::from_millis(1),
    longest_pause: Duration::from_millis(5),
    waits_for_limits: true,
};

/// A reply that never arrives.
pub const LOST: (u16, Value) = (0, Value::Null);

/// The fault of one `PUT`. After the last fault, the service does not fail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    None,
    /// The connection breaks after this many bytes of the part are stored.
    DropAfter(usize),
    /// The part is stored, but no answer is sent.
    LoseAnswer,
    /// The answer has this status, and nothing is stored.
    Refuse(u16),
    /// The answer says that the part does not start at the end of the stored bytes.
    WrongOffset,
    /// The answer says that the address has expired.
    AddressEnded,
    /// From now on every connection breaks.
    Gone,
}

#[derive(Default)]
struct State {
    /// The replies to calls, by the last word of their address.
    replies: BTreeMap<&'static str, VecDeque<(u16, Value)>>,
    /// The headers of these calls.
    calls: Vec<BTreeMap<String, String>>,
    bodies: Vec<(String, Value)>,
    faults: VecDeque<Fault>,
    stored: Vec<u8>,
    gone: bool,
    opened: usize,
    attempts: usize,
    received: usize,
}

pub struct TestService {
    port: u16,
    state: Arc<Mutex<State>>,
}

struct Request {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: BufReader<TcpStream>,
    length: usize,
}

impl TestService {
    pub fn start<const N: usize>(faults: [Fault; N]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State { faults: faults.into(), ..State::default() }));
        let served = Arc::clone(&state);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                serve(&mut served.lock().unwrap(), port, connection);
            }
        });
        TestService { port, state }
    }

    /// Sets the replies of a function or an endpoint, in order.
    pub fn answering<const N: usize>(self, name: &'static str, replies: [(u16, Value); N]) -> Self {
        self.state().replies.insert(name, replies.into());
        self
    }

    /// The settings of a caller with a deploy token.
    pub fn settings(&self) -> ClientSettings {
        ClientSettings {
            api_url: self.url(),
            application_id: Some("svc".into()),
            credential: Some(ClientCredential::DeployToken("svc_dt_test".into())),
            app: None,
            is_repositorys_choice: false,
        }
    }

    pub fn client(&self) -> Client {
        Client::new(&self.settings()).unwrap().with_patience(IMPATIENT)
    }

    /// The headers of the received calls.
    pub fn calls(&self) -> Vec<BTreeMap<String, String>> {
        self.state().calls.clone()
    }

    /// The bodies of the received calls of a function.
    pub fn bodies(&self, name: &str) -> Vec<Value> {
        let state = self.state();
        let of_name = state.bodies.iter().filter(|(called, _)| called == name);
        of_name.map(|(_, body)| body.clone()).collect()
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn stored(&self) -> Vec<u8> {
        self.state().stored.clone()
    }

    /// How often an upload was opened.
    pub fn opened(&self) -> usize {
        self.state().opened
    }

    /// How many requests came to the upload address.
    pub fn attempts(&self) -> usize {
        self.state().attempts
    }

    /// How many bytes of parts came, repeated bytes included.
    pub fn received(&self) -> usize {
        self.state().received
    }

    pub fn come_back(&self) {
        self.state().gone = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

/// Serves one request, then closes the connection.
fn serve(state: &mut State, port: u16, connection: TcpStream) {
    let Some(mut request) = read(connection) else { return };
    if request.path.ends_with("/upload-url") {
        state.opened += 1;
        let reply = json!({
            "artifactId": "art_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
            "state": "pending",
            "offset": state.stored.len(),
            "uploadUrl": format!("http://127.0.0.1:{port}/content?signature=1"),
            "method": "PUT",
            "headers": {"X-Upload": "1"},
            "maxBytes": 1_u64 << 32,
            "expiresAt": "2030-01-01T00:00:00.000Z",
        });
        return answer(request, 201, "", &reply.to_string());
    }
    let name = request.path.rsplit('/').next().unwrap_or_default().to_owned();
    let name = name.as_str();
    if let Some(replies) = state.replies.get_mut(name) {
        state.calls.push(request.headers.clone());
        let (status, reply) = replies.pop_front().unwrap();
        let mut body = vec![0; request.length];
        request.body.read_exact(&mut body).unwrap();
        request.length = 0;
        state.bodies.push((name.to_owned(), serde_json::from_slice(&body).unwrap_or_default()));
        if status == LOST.0 {
            return;
        }
        return answer(request, status, "Retry-After: 0\r\n", &reply.to_string());
    }
    assert!(!request.headers.contains_key("authorization"), "a signed address needs no token");
    state.attempts += 1;
    let fault = match request.method.as_str() {
        "PUT" => state.faults.pop_front().unwrap_or(Fault::None),
        _ => Fault::None,
    };
    state.gone |= fault == Fault::Gone;
    if state.gone {
        return;
    }
    if request.method == "HEAD" {
        let offset = format!("Upload-Offset: {}\r\n", state.stored.len());
        return answer(request, 200, &offset, "");
    }
    let kept = match fault {
        Fault::Refuse(status) => {
            return answer(request, status, "Retry-After: 0\r\n", &failure(142, None).to_string());
        }
        Fault::AddressEnded => return answer(request, 401, "", &failure(119, None).to_string()),
        Fault::WrongOffset => {
            let offset = state.stored.len();
            return answer(request, 409, "", &failure(119, Some(offset)).to_string());
        }
        Fault::DropAfter(bytes) => bytes,
        _ => usize::MAX,
    };
    let (start, total) = range(&request.headers["content-range"]);
    assert_eq!(start, state.stored.len(), "a part starts where the stored bytes end");
    assert!(request.headers.contains_key("content-digest") && request.headers["x-upload"] == "1");
    let mut part = Vec::new();
    let length = request.length.min(kept) as u64;
    (&mut request.body).take(length).read_to_end(&mut part).unwrap();
    state.received += part.len();
    state.stored.extend(part);
    if matches!(fault, Fault::DropAfter(_) | Fault::LoseAnswer) {
        return;
    }
    let status = if state.stored.len() == total { 200 } else { 202 };
    answer(request, status, &format!("Upload-Offset: {}\r\n", state.stored.len()), "{}");
}

fn read(connection: TcpStream) -> Option<Request> {
    let mut body = BufReader::new(connection);
    let mut line = String::new();
    body.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        body.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|l| l.parse().ok()).unwrap_or(0);
    Some(Request { method, path, headers, body, length })
}

/// Answers, then reads the rest of the request: closing the connection earlier would reset it and
/// lose the answer.
fn answer(request: Request, status: u16, headers: &str, body: &str) {
    let Request { body: mut rest, .. } = request;
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status} x\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    let _ = rest.get_mut().write_all(text.as_bytes());
    let _ = rest.get_mut().shutdown(std::net::Shutdown::Write);
    let _ = std::io::copy(&mut rest, &mut std::io::sink());
}

/// The body of a refusal.
pub fn failure(code: u16, expected_offset: Option<usize>) -> Value {
    json!({"code": code, "error": "as the test wants it", "expectedOffset": expected_offset})
}

/// Start and total of `bytes a-b/total`.
fn range(text: &str) -> (usize, usize) {
    let (range, total) = text.strip_prefix("bytes ").unwrap().split_once('/').unwrap();
    let (start, _) = range.split_once('-').unwrap();
    (start.parse().unwrap(), total.parse().unwrap())
}
