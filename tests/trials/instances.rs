//! Instances at two engines, while the nodes that act for them are killed and frozen and an engine says nothing. No
//! instance runs at both engines at once, nothing that was written into its volume is lost, and in the end it is as it
//! was last wanted.

use super::{random, time};
use crate::{
    daemons::Daemon,
    engines::adding,
    instances::until,
    support::{
        engine::{Installed, engine, engine_host, template},
        load::Over,
        service::{LONGEST, Person, eventually},
    },
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    process::{Child, Command, Output, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    thread::sleep,
    time::{Duration, Instant},
};

/// How long this takes by default, in seconds.
const SECONDS: u64 = 30;
const NODES: usize = 3;
const INSTANCES: usize = 3;
/// The pause of a client after each deed, in milliseconds.
const PAUSES: std::ops::Range<u64> = 0..3_000;
/// How long something goes wrong, in milliseconds. A node is given up after six seconds.
const LASTS: std::ops::Range<u64> = 500..12_000;

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill(usize),
    Stop(usize),
    Freeze(usize),
    /// The second engine says nothing.
    FreezeEngine,
}

impl Fault {
    fn any(random: &mut fastrand::Rng) -> Fault {
        let node = random.usize(..NODES);
        match random.u8(..7) {
            0..2 => Fault::Kill(node),
            2 => Fault::Stop(node),
            3..6 => Fault::Freeze(node),
            _ => Fault::FreezeEngine,
        }
    }

    fn begin(self, service: &mut Installed, daemon: &Daemon) {
        match self {
            Fault::Kill(node) => service.kill_node(node),
            Fault::Stop(node) => service.stop_node(node),
            Fault::Freeze(node) => service.signal_node(node, "STOP"),
            Fault::FreezeEngine => daemon.signal("STOP"),
        }
    }

    fn end(self, service: &mut Installed, daemon: &Daemon) {
        match self {
            Fault::Kill(node) | Fault::Stop(node) => service.boot_node(node),
            Fault::Freeze(node) => service.signal_node(node, "CONT"),
            Fault::FreezeEngine => daemon.signal("CONT"),
        }
    }
}

/// What the clients share, and what they wrote down.
struct Trial {
    http: reqwest::blocking::Client,
    /// Where functions are called.
    url: String,
    application_id: String,
    admin: Person,
    ada: Person,
    /// The added engine.
    second: Value,
    /// The addresses of both engines for the `docker` client: that of the settings, and the added one.
    hosts: [String; 2],
    instances: Vec<Value>,
    is_over: AtomicBool,
    numbers: AtomicU32,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// What was written into the volume of each instance.
    written: [BTreeSet<u32>; INSTANCES],
    /// The state that each instance was last wanted to have. `None`: its clients were not told.
    wanted: [Option<&'static str>; INSTANCES],
    /// How often each function was answered with each status. 0: it was not answered.
    answers: BTreeMap<(&'static str, u16), u32>,
}

#[test]
fn instances_are_in_one_place_whatever_happens_to_nodes() {
    let test = "instances_are_in_one_place_whatever_happens_to_nodes";
    let Some(engine) = engine(test) else { return };
    let Some(daemon) = Daemon::start_with_tls(test) else { return };
    let builder = engine.publish("builder-base", "base-of-trial", "1");
    let settings = [("SVC_BUILDER_BASE_IMAGE", builder.as_str())];
    let Some(mut service) = engine.service_on_nodes(test, NODES, &settings) else { return };
    let (time, mut random) = (time(SECONDS), random());

    let server = json!({"role": "server", "image": "web-server", "port": 8080, "volume": "/kept",
        "healthCheck": {"http": "/health"}});
    let template = template(&service, engine, json!([server]));
    let trial = Trial::new(&service, &daemon, &template);
    let histories = trial.hosts.each_ref().map(|host| History::of(&service.application_id, host));
    for instance in &trial.instances {
        until(&service, &trial.ada, instance, &["running"]);
    }

    let mut faults: BTreeMap<String, u32> = BTreeMap::new();
    std::thread::scope(|scope| {
        let seeds: Vec<_> = (0..INSTANCES).map(|_| random.u64(..)).collect();
        let trial = &trial;
        let clients = seeds.into_iter().enumerate();
        let clients = clients.map(|(one, seed)| scope.spawn(move || trial.work(one, seed)));
        let clients: Vec<_> = clients.collect();
        let _over = Over(&trial.is_over);
        let begun = Instant::now();
        // On a slow machine it takes longer until there is something to judge. A client that has ended has found
        // something.
        while (begun.elapsed() < time || History::moves(&histories) == 0)
            && !clients.iter().any(|client| client.is_finished())
        {
            assert!(begun.elapsed() < time + LONGEST, "no instance arrives");
            let fault = Fault::any(&mut random);
            *faults.entry(format!("{fault:?}")).or_default() += 1;
            fault.begin(&mut service, &daemon);
            sleep(Duration::from_millis(random.u64(LASTS)));
            fault.end(&mut service, &daemon);
            sleep(Duration::from_millis(random.u64(PAUSES)));
        }
    });
    println!("faults: {faults:?}\nanswers: {:?}", trial.seen.lock().unwrap().answers);

    trial.all_are_as_wanted(&service);
    trial.nothing_is_lost(&service);
    trial.all_go(&service);
    // The rest of the history is judged too.
    println!("{} arrivals at another engine", History::moves(&histories));
}

impl Trial {
    fn new(service: &Installed, daemon: &Daemon, template: &Value) -> Trial {
        let admin = service.administrator();
        let second = service.call(Some(&admin), "svc_admin_addEngine", adding(daemon)).ok();
        let ada = service.register("ada");
        let (project, _) = service.project_with_app(&ada, None);
        let instance = |number| {
            let params = json!({"projectId": project, "templateId": template, "name": format!("Backend {number}")});
            service.call(Some(&ada), "svc_createBackendInstance", params).ok()["id"].clone()
        };
        Trial {
            http: service.http.clone(),
            url: format!("{}/backend/functions", service.url),
            application_id: service.application_id.clone(),
            instances: (0..INSTANCES).map(instance).collect(),
            second: second["id"].clone(),
            hosts: [engine_host(), daemon.address.clone()],
            admin,
            ada,
            is_over: AtomicBool::new(false),
            numbers: AtomicU32::new(0),
            seen: Mutex::new(Seen { wanted: [Some("running"); INSTANCES], ..Seen::default() }),
        }
    }

    /// Works with an instance until the trial is over.
    fn work(&self, one: usize, seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let of_it = json!({"instanceId": self.instances[one]});
        while !self.is_over.load(Relaxed) {
            match random.u8(..10) {
                0..3 => self.write(one),
                3..6 => {
                    let mut to = of_it.clone();
                    to["engineId"] = [&Value::Null, &self.second][random.usize(..2)].clone();
                    self.call(&self.admin, "svc_admin_moveInstance", &to);
                }
                6 => self.want(one, "svc_stopBackendInstance", "stopped"),
                7..9 => self.want(one, "svc_startBackendInstance", "running"),
                _ => self.want(one, "svc_restartBackendInstance", "running"),
            }
            sleep(Duration::from_millis(random.u64(PAUSES)));
        }
    }

    /// Calls a function after which the instance is to have this state.
    fn want(&self, one: usize, function: &'static str, state: &'static str) {
        let of_it = json!({"instanceId": self.instances[one]});
        let status = self.call(&self.ada, function, &of_it);
        let wanted = &mut self.seen.lock().unwrap().wanted[one];
        match status {
            200 => *wanted = Some(state),
            409 => {}
            _ => *wanted = None,
        }
    }

    /// Calls a function. It may be refused, because the instance does something else just now. Returns the status of
    /// the answer; 0 without one.
    fn call(&self, who: &Person, function: &'static str, params: &Value) -> u16 {
        let call = self.http.post(format!("{}/{function}", self.url)).json(params);
        let call = call.header("X-Backend-Application-Id", &self.application_id);
        let answer = call.header("X-Backend-Session-Token", &who.token).send();
        let status = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
        assert!(
            matches!(status, 0 | 200 | 409 | 424 | 429 | 502..=504),
            "{function}: {status} {:?}",
            answer.map(|answer| answer.text())
        );
        *self.seen.lock().unwrap().answers.entry((function, status)).or_default() += 1;
        status
    }

    /// Writes a number into the volume of the instance, where it runs.
    fn write(&self, one: usize) {
        let number = self.numbers.fetch_add(1, Relaxed);
        let script = format!("echo {number} >> /kept/numbers && sync /kept/numbers");
        let written = self.hosts.iter().any(|host| self.exec(host, one, &script).is_some());
        if written {
            self.seen.lock().unwrap().written[one].insert(number);
        }
    }

    /// What a shell in the container of the instance prints, if one runs at this engine and it succeeds.
    fn exec(&self, host: &str, one: usize, script: &str) -> Option<String> {
        let container = self.running(host, one).into_iter().next()?;
        let run = ["exec", "--user", "0", &container, "sh", "-c", script];
        let done = docker(host, &run);
        done.status.success().then(|| String::from_utf8(done.stdout).unwrap())
    }

    /// The containers of the instance that run at this engine.
    fn running(&self, host: &str, one: usize) -> Vec<String> {
        let filter = format!("label=svc.instance={}", self.instances[one].as_str().unwrap());
        let list = docker(host, &["ps", "--quiet", "--filter", &filter]).stdout;
        String::from_utf8(list).unwrap().lines().map(str::to_owned).collect()
    }

    /// Where the instance is: the number of its engine, if it does not move.
    fn place(&self, service: &Installed, one: usize) -> Option<usize> {
        [&Value::Null, &self.second].into_iter().position(|engine| {
            let params = json!({"engineId": engine});
            let all = service.call(Some(&self.admin), "svc_admin_getEngineInstances", params).ok();
            let mut all = all["items"].as_array().unwrap().iter();
            all.any(|it| it["id"] == self.instances[one] && it["moving"] == false)
        })
    }

    /// Each instance comes to rest, and runs at its engine if it is to run, and nowhere else.
    fn all_are_as_wanted(&self, service: &Installed) {
        for (one, id) in self.instances.iter().enumerate() {
            let mut state = Value::Null;
            let what = format!("{id} rests");
            eventually(&what, || {
                let found = json!({"instanceId": id});
                let found = service.call(Some(&self.ada), "svc_getBackendInstance", found).ok();
                state = found["state"].clone();
                (state == "running" || state == "stopped") && self.place(service, one).is_some()
            });
            let last = self.seen.lock().unwrap().wanted[one];
            assert!(last.is_none_or(|last| state == last), "{id} is {state}, not {last:?}");
            let place = self.place(service, one).unwrap();
            let counts = self.hosts.each_ref().map(|host| self.running(host, one).len());
            let mut wanted = [0, 0];
            wanted[place] = usize::from(state == "running");
            assert_eq!(counts, wanted, "{id} is {state} at {place}");
        }
    }

    /// All that was written is in the volumes, once.
    fn nothing_is_lost(&self, service: &Installed) {
        for (one, written) in self.seen.lock().unwrap().written.iter().enumerate() {
            let of_it = json!({"instanceId": self.instances[one]});
            service.call(Some(&self.ada), "svc_startBackendInstance", of_it).ok();
            until(service, &self.ada, &self.instances[one], &["running"]);
            let host = &self.hosts[self.place(service, one).unwrap()];
            let there = self.exec(host, one, "cat /kept/numbers || true").unwrap();
            let there: Vec<u32> = there.lines().map(|line| line.parse().unwrap()).collect();
            println!("instance {one}: {} numbers", there.len());
            assert!(there.is_sorted(), "{there:?}");
            let there = there.into_iter().collect();
            assert!(written.is_subset(&there), "{written:?} were written, and {there:?} are there");
        }
    }

    /// Nothing of a deleted instance is left at either engine.
    fn all_go(&self, service: &Installed) {
        for id in &self.instances {
            let params = json!({"instanceId": id, "deleteData": true});
            service.call(Some(&self.ada), "svc_deleteBackendInstance", params).ok();
        }
        let filter = format!("label=svc.installation={}", service.application_id);
        eventually("nothing is left", || {
            self.hosts.iter().all(|host| {
                let left = |list: &[&str]| {
                    let all = [list, &["--filter", &filter, "--filter", "label=svc.instance"]];
                    docker(host, &all.concat()).stdout.is_empty()
                };
                left(&["ps", "--all", "--quiet"]) && left(&["volume", "ls", "--quiet"])
            })
        });
    }
}

/// What an engine says of the containers of instances that start and end.
struct History {
    file: tempfile::NamedTempFile,
    child: Child,
}

/// A container of an instance started or ended.
struct Event {
    /// In nanoseconds, by the clock of the machine.
    at: u64,
    engine: usize,
    starts: bool,
    container: String,
    instance: String,
}

impl History {
    fn of(installation: &str, host: &str) -> History {
        let file = tempfile::NamedTempFile::new().unwrap();
        let filters = [
            &format!("label=svc.installation={installation}"),
            "label=svc.instance",
            "type=container",
            "event=start",
            "event=die",
        ];
        let format =
            "{{.TimeNano}} {{.Action}} {{.Actor.ID}} {{index .Actor.Attributes \"svc.instance\"}}";
        let mut events = Command::new("docker");
        events.args(["-H", host, "events", "--since", "0", "--format", format]);
        for filter in filters {
            events.args(["--filter", filter]);
        }
        let child = events.stdin(Stdio::null()).stdout(file.reopen().unwrap()).spawn().unwrap();
        History { file, child }
    }

    /// What both engines said, in the order in which it happened.
    fn events(both: &[History; 2]) -> Vec<Event> {
        let mut all = Vec::new();
        for (engine, history) in both.iter().enumerate() {
            let text = std::fs::read_to_string(history.file.path()).unwrap();
            for line in text.lines() {
                let mut words = line.split(' ').map(str::to_owned);
                let mut next = || words.next().unwrap_or_default();
                let (at, starts) = (next().parse().unwrap(), next() == "start");
                all.push(Event { at, engine, starts, container: next(), instance: next() });
            }
        }
        all.sort_by_key(|event| event.at);
        all
    }

    /// How often an instance started at another engine than before. It never runs at both.
    fn moves(both: &[History; 2]) -> usize {
        let mut running: BTreeMap<&str, [BTreeSet<&str>; 2]> = BTreeMap::new();
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        let mut moves = 0;
        let events = Self::events(both);
        for Event { engine, starts, container, instance, .. } in &events {
            let there = running.entry(instance).or_default();
            if !starts {
                there[*engine].remove(container.as_str());
                continue;
            }
            let elsewhere = &there[1 - engine];
            assert!(
                elsewhere.is_empty(),
                "{instance} starts at {engine} and runs as {elsewhere:?}"
            );
            there[*engine].insert(container);
            moves += usize::from(last.insert(instance, *engine).is_some_and(|was| was != *engine));
        }
        moves
    }
}

impl Drop for History {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn docker(host: &str, args: &[&str]) -> Output {
    Command::new("docker").args(["-H", host]).args(args).stdin(Stdio::null()).output().unwrap()
}
