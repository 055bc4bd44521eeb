//! Kills the program at random moments under load. After the restart, every acknowledged change is
//! there, and the program completes the work that it had begun.
//!
//! `SVC_CRASH_ROUNDS` sets how many kills there are; `SVC_CRASH_SEED` repeats a run.

use crate::support::service::{Answer, Person, Service, fixture, sha256};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::{Duration, Instant},
};

const CLIENTS: usize = 6;

/// The connection broke, so the outcome of the call is unknown.
struct Unknown;

/// The answers that one client got, and the calls it was waiting for when the program was killed.
struct Client {
    person: Person,
    random: fastrand::Rng,
    steps: u64,
    /// The acknowledged name, and a name that is not yet acknowledged.
    name: (String, Option<String>),
    /// Projects by name, with their ids and known fates.
    projects: BTreeMap<String, (Value, Fate)>,
    /// The name and the request id of a creation that is not yet acknowledged.
    creating: Option<(String, String)>,
    /// Verified artifacts, by id.
    artifacts: BTreeMap<String, String>,
    /// The current release of a channel of an app, where it is known.
    current: BTreeMap<(String, String), Option<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    There,
    Deleted,
    Unknown,
}

impl Client {
    fn new(person: Person, seed: u64) -> Self {
        Client {
            person,
            random: fastrand::Rng::with_seed(seed),
            steps: 0,
            name: ("nobody yet".into(), None),
            projects: BTreeMap::new(),
            creating: None,
            artifacts: BTreeMap::new(),
            current: BTreeMap::new(),
        }
    }

    fn call(
        &self,
        service: &Service,
        function: &str,
        params: Value,
        once: Option<&str>,
    ) -> Result<Answer, Unknown> {
        let answer =
            service.try_call(Some(&self.person), function, params, once).map_err(|_| Unknown)?;
        // A service that stops may answer "it may have been done" and "try again".
        if matches!(answer.status, 424 | 503) { Err(Unknown) } else { Ok(answer) }
    }

    fn work(&mut self, service: &Service, stop: &AtomicBool) {
        while !stop.load(SeqCst) {
            self.steps += 1;
            let done = match self.random.u8(0..10) {
                0..=3 => self.rename(service),
                4..=5 => self.create_project(service),
                6 => self.delete_project(service),
                _ => self.release(service),
            };
            if done.is_err() {
                return;
            }
        }
    }

    fn rename(&mut self, service: &Service) -> Result<(), Unknown> {
        let name = format!("name {}", self.steps);
        self.name.1 = Some(name.clone());
        self.call(service, "updateProfile", json!({"name": name}), None)?.ok();
        self.name = (name, None);
        Ok(())
    }

    fn create_project(&mut self, service: &Service) -> Result<(), Unknown> {
        let name = format!("{} {}", self.person.id, self.steps);
        let once = format!("create {name}");
        self.creating = Some((name.clone(), once.clone()));
        let made =
            self.call(service, "svc_createProject", json!({"name": name}), Some(&once))?.ok();
        self.creating = None;
        self.projects.insert(name, (made["id"].clone(), Fate::There));
        Ok(())
    }

    fn delete_project(&mut self, service: &Service) -> Result<(), Unknown> {
        let there = self.projects.iter_mut().find(|(_, (_, fate))| *fate == Fate::There);
        let Some((_, (id, fate))) = there else { return Ok(()) };
        *fate = Fate::Unknown;
        let id = id.clone();
        self.call(service, "svc_deleteProject", json!({"projectId": id}), None)?.ok();
        for (known, fate) in self.projects.values_mut() {
            if *known == id {
                *fate = Fate::Deleted;
            }
        }
        Ok(())
    }

    /// Uploads both versions to a new app, publishes both, and rolls the second back.
    fn release(&mut self, service: &Service) -> Result<(), Unknown> {
        let project =
            self.call(service, "svc_createProject", json!({"name": "releases"}), None)?.ok();
        let app = self
            .call(service, "createApp", json!({"name": "app", "projectId": project["id"]}), None)?
            .ok();
        let app = app["id"].as_str().unwrap().to_owned();
        let channel = (app.clone(), "production".to_owned());
        let mut releases = Vec::new();
        for (file, version) in [("sample.apk", "1.4.2"), ("sample-1.5.0.apk", "1.5.0")] {
            let artifact = self.upload(service, &app, file, version)?;
            let params = json!({"appId": app, "artifactIds": [artifact], "version": version, "channel": "production"});
            let release = self.call(service, "svc_createRelease", params, None)?.ok();
            let id = release["id"].as_str().unwrap().to_owned();
            self.current.insert(channel.clone(), None);
            let published = self
                .call(
                    service,
                    "svc_publishRelease",
                    json!({"releaseId": id, "targets": ["ota"]}),
                    None,
                )?
                .ok();
            assert_eq!(published["state"], "published");
            self.current.insert(channel.clone(), Some(id.clone()));
            releases.push(id);
        }
        self.current.insert(channel.clone(), None);
        let back = self
            .call(service, "svc_rollbackRelease", json!({"releaseId": releases[1]}), None)?
            .ok();
        assert_eq!(back["id"], releases[0].as_str());
        self.current.insert(channel, Some(releases[0].clone()));
        Ok(())
    }

    fn upload(
        &mut self,
        service: &Service,
        app: &str,
        file: &str,
        version: &str,
    ) -> Result<String, Unknown> {
        let bytes = std::fs::read(fixture(file)).unwrap();
        let hash = sha256(&bytes);
        let send = |request: reqwest::blocking::RequestBuilder| {
            let response = request
                .header("X-Backend-Session-Token", &self.person.token)
                .send()
                .map_err(|_| Unknown)?;
            let answer = Service::answer(response).map_err(|_| Unknown)?;
            if matches!(answer.status, 424 | 503) { Err(Unknown) } else { Ok(answer) }
        };
        let body = json!({"appId": app, "platform": "android", "fileName": file, "version": version, "size": bytes.len(), "sha256": hash});
        let opened = send(
            service.http.post(format!("{}/api/v1/artifacts/upload-url", service.url)).json(&body),
        )?;
        assert_eq!(opened.status, 201, "{}", opened.body);
        let put = send(service.http.put(opened.body["uploadUrl"].as_str().unwrap()).body(bytes))?;
        assert_eq!(put.status, 200, "{}", put.body);
        let id = opened.body["artifactId"].as_str().unwrap().to_owned();
        let finalize = format!("{}/api/v1/artifacts/{id}/finalize", service.url);
        let verified = send(service.http.post(finalize).json(&json!({"sha256": hash})))?;
        assert_eq!(
            (verified.status, verified.body["state"].as_str()),
            (201, Some("verified")),
            "{}",
            verified.body
        );
        self.artifacts.insert(id.clone(), hash);
        Ok(id)
    }

    /// Checks after a restart that every acknowledged change is there, and that every other change
    /// happened once or not at all.
    fn verify(&mut self, service: &Service) {
        let read =
            |function: &str, params: Value| service.call(Some(&self.person), function, params);
        let name = read("getCurrentUser", json!({})).ok()["name"].as_str().unwrap().to_owned();
        if self.name.0 != "nobody yet" {
            assert!(
                name == self.name.0 || Some(&name) == self.name.1.as_ref(),
                "{name:?} instead of {:?}",
                self.name
            );
        }
        self.name = (name, None);
        for (id, hash) in &self.artifacts {
            let artifact = read("svc_getArtifact", json!({"artifactId": id})).ok();
            assert_eq!(
                (&artifact["state"], &artifact["sha256"]),
                (&json!("verified"), &json!(hash)),
                "{artifact}"
            );
        }
        for ((app, channel), expected) in &self.current {
            if let Some(expected) = expected {
                let latest = read(
                    "svc_getLatestRelease",
                    json!({"appId": app, "channel": channel, "platform": "android"}),
                )
                .ok();
                assert_eq!(latest["release"]["id"], *expected);
            }
        }
        if let Some((name, once)) = self.creating.take() {
            let made = service
                .try_call(
                    Some(&self.person),
                    "svc_createProject",
                    json!({"name": name}),
                    Some(&once),
                )
                .unwrap()
                .ok();
            self.projects.insert(name, (made["id"].clone(), Fate::There));
        }
        for (id, fate) in self.projects.values_mut() {
            let answer =
                service.call(Some(&self.person), "svc_getProject", json!({"projectId": id}));
            match fate {
                Fate::There => assert_eq!(answer.status, 200, "a project is lost: {}", answer.body),
                Fate::Deleted => {
                    assert_eq!(answer.status, 404, "a project came back: {}", answer.body)
                }
                Fate::Unknown => {
                    *fate = if answer.status == 200 { Fate::There } else { Fate::Deleted }
                }
            }
        }
    }

    /// Checks that nothing was created twice.
    fn count(&self, service: &Service) {
        let (mut cursor, mut names) = (Value::Null, Vec::new());
        loop {
            let mut params = json!({"limit": 200});
            if !cursor.is_null() {
                params["cursor"] = cursor;
            }
            let page = service.call(Some(&self.person), "svc_getProjects", params).ok();
            names.extend(
                page["items"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|p| p["name"].as_str().unwrap().to_owned()),
            );
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        let mut expected: Vec<_> = self
            .projects
            .iter()
            .filter(|(_, (_, fate))| *fate == Fate::There)
            .map(|(name, _)| name.clone())
            .collect();
        names.retain(|name| name != "releases");
        names.sort();
        expected.sort();
        assert_eq!(names, expected);
    }
}

/// Kills of one service. A longer run continues with a new service, because the checks after each
/// kill grow with the number of kills.
const KILLS: u64 = 50;

#[test]
fn whatever_was_acknowledged_survives_a_kill() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let rounds = number("SVC_CRASH_ROUNDS").unwrap_or(KILLS);
    let seed = number("SVC_CRASH_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("SVC_CRASH_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut killed, mut steps) = (0, 0);
    while killed < rounds {
        let kills = KILLS.min(rounds - killed);
        steps += kill_one_service(&mut random, kills);
        killed += kills;
        println!("{killed} kills, {steps} steps");
    }
}

/// Kills one service many times. Returns the number of steps of the clients.
fn kill_one_service(random: &mut fastrand::Rng, kills: u64) -> u64 {
    let mut service = Service::start_with(&[("SVC_LOG", "warn")]);
    let mut clients: Vec<_> = (0..CLIENTS)
        .map(|n| Client::new(service.register(&format!("client{n}")), random.u64(..)))
        .collect();
    for _ in 0..kills {
        let stop = AtomicBool::new(false);
        let life = Duration::from_millis(random.u64(20..500));
        let dead = Instant::now() + life;
        std::thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(|| client.work(&service, &stop));
            }
            std::thread::sleep(dead.saturating_duration_since(Instant::now()));
            service.signal("KILL");
            stop.store(true, SeqCst);
        });
        service.kill();
        service.check();
        service.boot();
        clients.iter_mut().for_each(|client| client.verify(&service));
    }
    clients.iter().for_each(|client| client.count(&service));
    assert!(
        clients.iter().any(|c| !c.artifacts.is_empty())
            && clients.iter().any(|c| c.projects.len() > 5),
        "too little was done"
    );

    // In the end no pending work is left, and every deletion is complete.
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        service.stop();
        let report = service.check();
        if report.contains(" 0 with work left") {
            return clients.iter().map(|client| client.steps).sum();
        }
        assert!(Instant::now() < deadline, "{report}");
        service.boot();
        std::thread::sleep(Duration::from_millis(500));
    }
}
