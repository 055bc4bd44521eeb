//! Clients of a service of several nodes, which write down what they did and what they were told.

use super::history::{Deed, Fate, Moment, Operation};
use crate::support::service::{Person, Service, eventually, fixture, sha256};
use reqwest::blocking::{Client as Http, RequestBuilder};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::sleep,
    time::{Duration, Instant},
};

/// After this time a client gives up a call. What becomes of it is not known.
const PATIENCE: Duration = Duration::from_secs(8);
/// The pause after a call that failed.
const PAUSE: Duration = Duration::from_millis(100);
/// How often the same creation is sent with the same key, by whoever comes next.
const RIVALS: u64 = 3;
const REGISTERS: usize = 4;

/// What became of a call.
#[derive(Debug)]
pub enum Outcome {
    Done(Value),
    /// The service says that nothing was done.
    NotDone,
    Unknown,
}

/// All that the clients share, and what they wrote down.
pub struct Trial {
    http: Http,
    /// The balancer, then each node.
    addresses: Vec<String>,
    application_id: String,
    person: Person,
    project: Value,
    /// The apps whose names are the registers.
    registers: Vec<Value>,
    begun: Instant,
    pub is_over: AtomicBool,
    numbers: AtomicU64,
    claims: AtomicU64,
    pub seen: Mutex<Seen>,
}

/// What the clients wrote down.
#[derive(Default)]
pub struct Seen {
    /// What happened to each register.
    pub histories: [Vec<Operation>; REGISTERS],
    /// The ids that the rivals of each claim were told.
    pub claims: BTreeMap<u64, Vec<Value>>,
    /// The releases that were published, with the file that each has.
    pub published: BTreeMap<String, String>,
    /// How many sessions were ended and then refused by a node.
    pub sessions: u64,
    pub done: u64,
    pub not_done: u64,
    pub unknown: u64,
    /// The longest time without a change that was acknowledged, and when the last one was.
    pub longest_silence: Duration,
    /// The longest time from the first call for a publication to the answer that it is published.
    pub longest_publication: Duration,
    last_change: Duration,
}

impl Seen {
    /// Whether there is enough of everything to judge it.
    pub fn is_enough(&self) -> bool {
        self.histories.iter().all(|history| history.len() > 100)
            && self.claims.values().any(|told| told.len() > 1)
            && self.sessions > 0
            && !self.published.is_empty()
    }
}

impl Trial {
    pub fn new(service: &Service, nodes: usize, person: Person, organization: &Value) -> Trial {
        let params = json!({"name": "Registers", "organizationId": organization});
        let project = service.call(Some(&person), "svc_createProject", params).ok()["id"].clone();
        let register = |number| {
            let params = json!({"name": format!("Register {number}"), "projectId": project});
            service.call(Some(&person), "createApp", params).ok()["id"].clone()
        };
        let addresses = (0..nodes).map(|node| service.address_of(node));
        Trial {
            http: Http::builder().timeout(PATIENCE).build().unwrap(),
            addresses: [service.url.clone()].into_iter().chain(addresses).collect(),
            application_id: service.application_id.clone(),
            registers: (0..REGISTERS).map(register).collect(),
            person,
            project,
            begun: Instant::now(),
            is_over: AtomicBool::new(false),
            numbers: AtomicU64::new(1),
            claims: AtomicU64::new(0),
            seen: Mutex::default(),
        }
    }

    /// Works until the trial is over.
    pub fn work(&self, seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        while !self.is_over.load(Relaxed) {
            match random.u8(0..100) {
                0..45 => self.read(&mut random),
                45..84 => self.write(&mut random),
                84..92 => self.claim(&mut random),
                92..97 => self.end_a_session(&mut random),
                _ => self.release(),
            }
        }
    }

    fn now(&self) -> Moment {
        Moment::try_from(self.begun.elapsed().as_nanos()).unwrap()
    }

    /// An address, half of the time that of the balancer.
    fn any(&self, random: &mut fastrand::Rng) -> &str {
        let nodes = self.addresses.len() - 1;
        &self.addresses[if random.bool() { 0 } else { 1 + random.usize(..nodes) }]
    }

    fn function(&self, address: &str, name: &str, params: &Value) -> RequestBuilder {
        let call = self.http.post(format!("{address}/backend/functions/{name}")).json(params);
        call.header("X-Backend-Application-Id", &self.application_id)
    }

    fn call(&self, address: &str, name: &str, params: &Value) -> Outcome {
        let call = self.function(address, name, params);
        self.send(call.header("X-Backend-Session-Token", &self.person.token))
    }

    fn send(&self, request: RequestBuilder) -> Outcome {
        self.send_unless(request, None)
    }

    /// Like [`send`](Trial::send), where an answer of this status says that nothing was done.
    fn send_unless(&self, request: RequestBuilder, not_done: Option<u16>) -> Outcome {
        let outcome = outcome(request, not_done);
        let mut seen = self.seen.lock().unwrap();
        match outcome {
            Outcome::Done(_) => seen.done += 1,
            Outcome::NotDone => seen.not_done += 1,
            Outcome::Unknown => seen.unknown += 1,
        }
        drop(seen);
        if !matches!(outcome, Outcome::Done(_)) {
            sleep(PAUSE);
        }
        outcome
    }

    /// A change was acknowledged.
    fn changed(&self) {
        let mut seen = self.seen.lock().unwrap();
        let now = self.begun.elapsed();
        seen.longest_silence = seen.longest_silence.max(now.saturating_sub(seen.last_change));
        seen.last_change = now;
    }

    fn record(&self, register: usize, from: Moment, deed: Deed) {
        let operation = Operation { from, to: self.now(), deed };
        self.seen.lock().unwrap().histories[register].push(operation);
    }

    fn read(&self, random: &mut fastrand::Rng) {
        let register = random.usize(..REGISTERS);
        self.read_at(self.any(random), register);
    }

    /// Reads a register. Returns whether it was answered.
    fn read_at(&self, address: &str, register: usize) -> bool {
        let from = self.now();
        let found = self.call(address, "getApp", &json!({"appId": self.registers[register]}));
        let Outcome::Done(app) = found else { return false };
        let name = app["name"].as_str().unwrap();
        let value = name.strip_prefix("Value ").map(|number| number.parse().unwrap());
        self.record(register, from, Deed::Read(value));
        true
    }

    fn write(&self, random: &mut fastrand::Rng) {
        let register = random.usize(..REGISTERS);
        let value = self.numbers.fetch_add(1, Relaxed);
        let params = json!({"appId": self.registers[register], "name": format!("Value {value}")});
        let from = self.now();
        let fate = match self.call(self.any(random), "updateApp", &params) {
            Outcome::Done(_) => Fate::Done,
            Outcome::NotDone => Fate::NotDone,
            Outcome::Unknown => Fate::Unknown,
        };
        self.record(register, from, Deed::Write(value, fate));
        if fate == Fate::Done {
            self.changed();
        }
    }

    /// Reads each register at each node, when all faults are over.
    pub fn read_everywhere(&self) {
        for address in &self.addresses {
            for register in 0..REGISTERS {
                eventually("a register is read", || self.read_at(address, register));
            }
        }
    }

    /// Creates something with a key that is used twice more, most often by other clients and sometimes at the same time.
    fn claim(&self, random: &mut fastrand::Rng) {
        let claim = self.claims.fetch_add(1, Relaxed) / RIVALS;
        let params = json!({"name": claim_name(claim), "projectId": self.project});
        let once = format!("claim-{claim}");
        for _ in 0..3 {
            let call = self.function(self.any(random), "createApp", &params);
            let call = call.header("X-Backend-Session-Token", &self.person.token);
            if let Outcome::Done(made) = self.send(call.header("X-Backend-Request-Id", &once)) {
                let mut seen = self.seen.lock().unwrap();
                seen.claims.entry(claim).or_default().push(made["id"].clone());
                return;
            }
        }
        self.seen.lock().unwrap().claims.entry(claim).or_default();
    }

    /// Signs in, ends the session, and asserts that no node takes it any more.
    fn end_a_session(&self, random: &mut fastrand::Rng) {
        let params = json!({"email": self.person.email, "password": "correct horse"});
        let signed_in = self.send(self.function(self.any(random), "loginWithEmail", &params));
        let Outcome::Done(session) = signed_in else { return };
        let token = session["sessionToken"].as_str().unwrap();
        let with = |address: &str, name: &str| {
            self.function(address, name, &json!({})).header("X-Backend-Session-Token", token)
        };
        let Outcome::Done(_) = self.send(with(self.any(random), "logout")) else { return };
        let mut refused = 0;
        for address in &self.addresses {
            let Ok(answer) = with(address, "getCurrentUser").send() else { continue };
            assert_ne!(answer.status(), 200, "{address} takes a session that was ended");
            refused += u64::from(answer.status() == 401);
        }
        self.seen.lock().unwrap().sessions += u64::from(refused > 0);
    }

    /// Uploads a file and publishes it as a release, and repeats each call until it is done, as a CI job does.
    fn release(&self) {
        let number = self.numbers.fetch_add(1, Relaxed);
        let until_done = |name: &str, params: Value| loop {
            let call = self.function(&self.addresses[0], name, &params);
            let call = call.header("X-Backend-Session-Token", &self.person.token);
            let once = format!("release-{number}-{name}");
            match self.send(call.header("X-Backend-Request-Id", once)) {
                Outcome::Done(reply) => return Some(reply),
                _ if self.is_over.load(Relaxed) => return None,
                _ => {}
            }
        };
        let publish = || {
            let params = json!({"name": format!("Release {number}"), "projectId": self.project});
            let app = until_done("createApp", params)?["id"].clone();
            let file = self.upload(&app)?;
            let params = json!({"appId": app, "artifactIds": [file], "version": "1.4.2", "channel": "production"});
            let release = until_done("svc_createRelease", params)?["id"].clone();
            let params = json!({"releaseId": release, "targets": ["ota"]});
            let begun = Instant::now();
            let mut published = until_done("svc_publishRelease", params)?;
            let id = release.as_str().unwrap().to_owned();
            self.seen.lock().unwrap().published.insert(id, file);
            // The call does not wait for long.
            while published["state"] == "publishing" && !self.is_over.load(Relaxed) {
                let params = json!({"releaseId": release});
                if let Outcome::Done(found) =
                    self.call(&self.addresses[0], "svc_getRelease", &params)
                {
                    published = found;
                }
                sleep(PAUSE);
            }
            let mut seen = self.seen.lock().unwrap();
            seen.longest_publication = seen.longest_publication.max(begun.elapsed());
            Some(())
        };
        publish();
    }

    /// Uploads a file: asks how far it is and sends the rest, until it is verified. Returns the artifact.
    fn upload(&self, app: &Value) -> Option<String> {
        let bytes = std::fs::read(fixture("sample.apk")).unwrap();
        let url = format!("{}/api/v1/artifacts", self.addresses[0]);
        let opening = json!({"appId": app, "platform": "android", "fileName": "sample.apk", "version": "1.4.2",
            "size": bytes.len(), "sha256": sha256(&bytes)});
        let as_person =
            |request: RequestBuilder| request.header("X-Backend-Session-Token", &self.person.token);
        while !self.is_over.load(Relaxed) {
            let opening = as_person(self.http.post(format!("{url}/upload-url"))).json(&opening);
            let Outcome::Done(upload) = self.send(opening) else { continue };
            let id = upload["artifactId"].as_str().unwrap().to_owned();
            if upload["state"] == "verified" {
                return Some(id);
            }
            let offset = usize::try_from(upload["offset"].as_u64().unwrap()).unwrap();
            if let (Some(url), true) = (upload["uploadUrl"].as_str(), offset < bytes.len()) {
                let range = format!("bytes {offset}-{}/{}", bytes.len() - 1, bytes.len());
                let rest = self.http.put(url).header("Content-Range", range);
                let rest = rest.body(bytes[offset..].to_vec());
                // What was sent before and given up may arrive first.
                let Outcome::Done(_) = self.send_unless(rest, Some(409)) else { continue };
            }
            let finalize = as_person(self.http.post(format!("{url}/{id}/finalize")));
            self.send(finalize.json(&json!({"sha256": sha256(&bytes)})));
        }
        None
    }

    /// The apps whose name begins like this, as a node knows them.
    pub fn apps(&self, service: &Service, prefix: &str) -> BTreeMap<String, Vec<Value>> {
        let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let mut params = json!({"projectId": self.project, "limit": 200});
        loop {
            let page = service.call(Some(&self.person), "listApps", params.clone()).ok();
            for app in page["items"].as_array().unwrap() {
                let name = app["name"].as_str().unwrap();
                if name.starts_with(prefix) {
                    found.entry(name.to_owned()).or_default().push(app["id"].clone());
                }
            }
            if page["nextCursor"].is_null() {
                return found;
            }
            params["cursor"] = page["nextCursor"].clone();
        }
    }

    pub fn person(&self) -> &Person {
        &self.person
    }
}

pub fn claim_name(claim: u64) -> String {
    format!("Claim {claim}")
}

/// What an answer says. Answers of 4xx are failures of the trial, except that it may be unknown what was done (424).
fn outcome(request: RequestBuilder, not_done: Option<u16>) -> Outcome {
    let Ok(answer) = request.send() else { return Outcome::Unknown };
    let status = answer.status().as_u16();
    let Ok(text) = answer.text() else { return Outcome::Unknown };
    match status {
        200..300 => {
            let body: Value = serde_json::from_str(&text).unwrap();
            Outcome::Done(body.get("result").cloned().unwrap_or(body))
        }
        // Sign-ins are limited. On a slow link a request may not have arrived as a whole in time.
        408 | 429 | 503 => Outcome::NotDone,
        status if not_done == Some(status) => Outcome::NotDone,
        424 | 502 | 504 => Outcome::Unknown,
        _ => panic!("{status}: {text}"),
    }
}
