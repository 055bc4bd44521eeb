//! A receiver of webhooks, which verifies signatures with npm `standardwebhooks`.

use super::{rig::Rig, service::eventually};
use serde_json::{Value, json};

pub struct Receiver {
    rig: Rig,
    /// Its host and port.
    pub host: String,
}

/// A request that a receiver got.
#[derive(Debug, Clone)]
pub struct Received {
    /// The header `webhook-id`.
    pub id: String,
    /// When it came, in milliseconds.
    pub at: i64,
    pub body: String,
    /// The parsed body.
    pub event: Value,
    pub headers: Value,
    /// The names of the secrets with which the library verifies it.
    pub verified_by: Vec<String>,
}

impl Receiver {
    pub fn start() -> Receiver {
        Receiver::start_at("127.0.0.1")
    }

    /// Listens at this address of the machine.
    pub fn start_at(host: &str) -> Receiver {
        let rig = Rig::start("webhooks", "receiver.mjs", &[host.as_ref()]);
        let host = rig.line();
        Receiver { rig, host }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.host)
    }

    /// Verifies later requests with these secrets, by name.
    pub fn verify_with(&self, secrets: &Value) {
        self.rig.ask(&json!({"secrets": secrets}));
    }

    /// Answers the next requests to a path like this, as `receiver.mjs` explains.
    pub fn answers(&self, path: &str, answers: Value) {
        self.rig.ask(&json!({"path": path, "answers": answers}));
    }

    /// Answers all requests to a path like this.
    pub fn always(&self, path: &str, answer: Value) {
        self.rig.ask(&json!({"path": path, "answers": [], "always": answer}));
    }

    /// The requests to a path so far.
    pub fn received(&self, path: &str) -> Vec<Received> {
        let all: Vec<Value> =
            serde_json::from_str(&self.rig.ask(&json!({"received": path}))).unwrap();
        all.into_iter().map(received).collect()
    }

    /// Waits until so many requests to a path came.
    pub fn wait_for(&self, path: &str, count: usize) -> Vec<Received> {
        eventually(&format!("{count} requests to {path}"), || self.received(path).len() >= count);
        self.received(path)
    }
}

fn received(request: Value) -> Received {
    assert_eq!(request["method"], "POST");
    let body = request["body"].as_str().unwrap().to_owned();
    Received {
        id: request["headers"]["webhook-id"].as_str().unwrap().to_owned(),
        at: request["at"].as_i64().unwrap(),
        event: serde_json::from_str(&body).unwrap(),
        body,
        headers: request["headers"].clone(),
        verified_by: serde_json::from_value(request["verifiedBy"].clone()).unwrap(),
    }
}
