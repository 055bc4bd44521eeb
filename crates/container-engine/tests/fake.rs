//! What the model does beyond the port: it fails on demand and remembers calls. Nothing is awaited
//! here, because the model needs no runtime.

use container_engine::{
    Container, ContainerSpec, Engine, EngineError, Exec, Happening, Health, HealthCommand, Labels,
    Limits, LogQuery, Output, Phase, Stream,
    fake::{
        Behaviour, Ending, Fake, InjectedFault, Life, Operation, ProgramStep, Script, Times,
        Wellness,
    },
};
use contract::Timestamp;
use futures_util::{FutureExt, StreamExt, stream::BoxStream};
use std::{
    collections::BTreeMap,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

/// The result of work that does not wait.
fn now<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("the model does not wait")
}

fn labels() -> Labels {
    Labels::from([("svc.test".to_owned(), "fake".to_owned())])
}

fn spec(name: &str) -> ContainerSpec {
    ContainerSpec {
        name: name.to_owned(),
        image: "app:1".to_owned(),
        command: None,
        env: BTreeMap::new(),
        network: "net".to_owned(),
        alias: "app".to_owned(),
        port: Some(80),
        mounts: Vec::new(),
        scratch: Vec::new(),
        read_only: true,
        user: None,
        capabilities: Vec::new(),
        limits: Limits { memory: 1 << 30, cpu_millis: 500, pids: 10 },
        health: Some(HealthCommand {
            command: vec!["true".to_owned()],
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            retries: 1,
            start_period: Duration::ZERO,
        }),
        grace: Duration::from_secs(1),
        labels: labels(),
    }
}

/// A model with a container of this behaviour.
fn with(behaviour: Behaviour) -> Fake {
    let fake = Fake::default();
    fake.add_image("app:1");
    fake.behave("app:1", behaviour);
    now(fake.ensure_network("net", &labels())).unwrap();
    now(fake.ensure_container(&spec("a"))).unwrap();
    fake
}

fn running() -> Fake {
    let fake = with(Behaviour::default());
    now(fake.start("a")).unwrap();
    fake
}

fn see(fake: &Fake) -> Container {
    now(fake.container("a")).unwrap().unwrap()
}

fn sleep() -> Exec {
    Exec {
        command: vec!["sleep".to_owned(), "1".to_owned()],
        env: BTreeMap::new(),
        user: None,
        within: Duration::from_secs(2),
    }
}

fn is_unreachable<T>(answer: Result<T, EngineError>) -> bool {
    matches!(answer, Err(EngineError::Unreachable(_)))
}

#[test]
fn an_operation_fails_before_and_after_it_was_done() {
    let fake = with(Behaviour::default());
    fake.inject(Operation::Start, InjectedFault::FailBefore, Times::Once);
    assert!(is_unreachable(now(fake.start("a"))));
    assert_eq!(fake.peek("a").unwrap().phase, Phase::Created);
    fake.inject(Operation::Start, InjectedFault::FailAfter, Times::Once);
    assert!(is_unreachable(now(fake.start("a"))));
    assert_eq!(fake.peek("a").unwrap().phase, Phase::Running);
    now(fake.start("a")).unwrap();
    assert_eq!(fake.calls(Operation::Start), 3);
    assert_eq!(fake.calls(Operation::Stop), 0);
}

#[test]
fn trouble_lasts_until_it_is_calmed() {
    let fake = running();
    let full = EngineError::Refused("no space left on device".to_owned());
    fake.inject(Operation::Container, InjectedFault::Refuse(full.clone()), Times::Always);
    for _ in 0..3 {
        assert_eq!(now(fake.container("a")), Err(full.clone()));
    }
    fake.calm(Operation::Container);
    assert!(see(&fake).is_running());
}

#[test]
fn an_operation_hangs_and_panics() {
    let fake = with(Behaviour::default());
    fake.inject(Operation::Start, InjectedFault::HangBefore, Times::Once);
    assert_eq!(fake.start("a").now_or_never(), None);
    assert_eq!(fake.peek("a").unwrap().phase, Phase::Created);
    fake.inject(Operation::Start, InjectedFault::HangAfter, Times::Once);
    assert_eq!(fake.start("a").now_or_never(), None);
    assert_eq!(fake.peek("a").unwrap().phase, Phase::Running);
    fake.inject(Operation::Stop, InjectedFault::Panic, Times::Once);
    let stop = || now(fake.stop("a", Duration::ZERO));
    assert!(catch_unwind(AssertUnwindSafe(stop)).is_err());
    assert!(fake.peek("a").unwrap().is_running());
    // The panic poisons nothing.
    now(fake.stop("a", Duration::ZERO)).unwrap();
}

#[test]
fn a_call_is_held_until_it_is_let_go() {
    let fake = with(Behaviour::default());
    let mut hold = fake.hold(Operation::Start);
    let mut context = Context::from_waker(Waker::noop());
    let mut start = pin!(fake.start("a"));
    assert!(start.as_mut().poll(&mut context).is_pending());
    now(hold.reached(1));
    assert_eq!(fake.peek("a").unwrap().phase, Phase::Created);
    hold.release();
    assert_eq!(start.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    now(fake.start("a")).unwrap();
}

#[test]
fn with_the_engine_containers_and_what_listens_end() {
    let fake = running();
    let mut events = now(fake.events(&labels(), fake.now())).unwrap();
    let mut program = now(fake.exec("a", sleep(), None)).unwrap();
    assert!(program.next().now_or_never().is_none());
    fake.disconnect();
    for operation in 0..3 {
        let answer = match operation {
            0 => now(fake.about()).map(drop),
            1 => now(fake.inventory(&labels())).map(drop),
            _ => now(fake.stop("a", Duration::ZERO)),
        };
        assert!(is_unreachable(answer));
    }
    assert!(is_unreachable(now(events.next()).unwrap()));
    assert_eq!(now(events.next()), None);
    assert!(is_unreachable(now(program.next()).unwrap()));
    assert_eq!(fake.executions()[0].ending, Some(Ending::CutOff));
    fake.back();
    assert!(!see(&fake).is_running());

    now(fake.start("a")).unwrap();
    fake.disconnect();
    fake.back_with_containers();
    assert!(see(&fake).is_running());
}

#[test]
fn containers_live_as_they_are_told() {
    let life = |life: Life| Behaviour { life, ..Behaviour::default() };
    let fake = with(life(Life::Exits(3)));
    now(fake.start("a")).unwrap();
    assert_eq!(see(&fake).phase, Phase::Exited { code: Some(3), out_of_memory: false });

    let fake = with(life(Life::ExitsAfterLooks(3, 4)));
    now(fake.start("a")).unwrap();
    assert!(see(&fake).is_running() && see(&fake).is_running());
    assert_eq!(see(&fake).phase, Phase::Exited { code: Some(4), out_of_memory: false });

    let fake = with(life(Life::CannotStart("port is already allocated".to_owned())));
    let refused = EngineError::Refused("port is already allocated".to_owned());
    assert_eq!(now(fake.start("a")), Err(refused));
}

#[test]
fn containers_are_as_well_as_they_are_told() {
    let health = |health: Wellness| Behaviour { health, ..Behaviour::default() };
    let fake = with(health(Wellness::HealthyAfterLooks(2)));
    let mut events = now(fake.events(&labels(), fake.now())).unwrap();
    now(fake.start("a")).unwrap();
    assert_eq!(see(&fake).health, Some(Health::Starting));
    assert_eq!(see(&fake).health, Some(Health::Healthy));
    fake.set_health("a", Health::Unhealthy);
    assert_eq!(see(&fake).health, Some(Health::Unhealthy));
    let told: Vec<Happening> = (0..3).map(|_| now(events.next()).unwrap().unwrap().what).collect();
    assert_eq!(
        told,
        [
            Happening::Started,
            Happening::Health(Health::Healthy),
            Happening::Health(Health::Unhealthy)
        ]
    );

    let fake = with(health(Wellness::Starting));
    now(fake.start("a")).unwrap();
    for _ in 0..100 {
        assert_eq!(see(&fake).health, Some(Health::Starting));
    }
}

#[test]
fn time_is_the_clocks() {
    let time = Arc::new(AtomicI64::new(1_000_000));
    let clock = time.clone();
    let fake = Fake::new(move || Timestamp::from_millis(clock.load(Ordering::SeqCst)));
    fake.add_image("app:1");
    let after = Duration::from_secs(10);
    fake.on_start(move |spec| {
        (spec.name == "a").then(|| Behaviour {
            health: Wellness::HealthyAfter(after),
            life: Life::ExitsAfter(after * 2, 1),
            ..Behaviour::default()
        })
    });
    now(fake.ensure_network("net", &labels())).unwrap();
    now(fake.ensure_container(&spec("a"))).unwrap();
    now(fake.start("a")).unwrap();
    assert_eq!(see(&fake).health, Some(Health::Starting));
    let first = now(fake.usage("a")).unwrap().unwrap();
    time.fetch_add(10_000, Ordering::SeqCst);
    assert_eq!(see(&fake).health, Some(Health::Healthy));
    let second = now(fake.usage("a")).unwrap().unwrap();
    // A tenth of a processor for ten seconds.
    assert_eq!(second.cpu_nanos - first.cpu_nanos, 1_000_000_000);
    time.fetch_add(10_000, Ordering::SeqCst);
    assert_eq!(see(&fake).phase, Phase::Exited { code: Some(1), out_of_memory: false });
}

#[test]
fn programs_do_as_they_are_told_and_are_remembered() {
    let fake = running();
    fake.on_exec(|call| {
        let script: Script = vec![
            ProgramStep::Read,
            ProgramStep::Out("half of it".into()),
            if call.exec.env.contains_key("CUT") {
                ProgramStep::CutOff
            } else {
                ProgramStep::Exit(9)
            },
        ];
        (call.exec.command == ["dump"]).then_some(script)
    });
    let dump = |cut: bool| {
        let input: BoxStream<'static, _> =
            futures_util::stream::iter(["ab".into(), "c".into()]).boxed();
        let mut exec = Exec { command: vec!["dump".to_owned()], ..sleep() };
        if cut {
            exec.env.insert("CUT".to_owned(), String::new());
        }
        let output = now(fake.exec("a", exec, Some(input))).unwrap();
        now(output.collect::<Vec<_>>())
    };
    let half = Ok(Output::Out("half of it".into()));
    assert_eq!(dump(false), [half.clone(), Ok(Output::Exit(9))]);
    let cut = dump(true);
    assert_eq!((cut.len(), &cut[0]), (2, &half));
    assert!(is_unreachable(cut[1].clone()));

    drop(now(fake.exec("a", sleep(), None)).unwrap());
    let unread = Exec { command: vec!["nonsense".to_owned()], ..sleep() };
    let output = now(fake.exec("a", unread, None)).unwrap();
    assert_eq!(now(output.collect::<Vec<_>>()).last(), Some(&Ok(Output::Exit(127))));

    let ran = fake.executions();
    assert_eq!(ran[0].input, b"abc");
    let endings: Vec<_> = ran.iter().filter_map(|execution| execution.ending).collect();
    assert_eq!(endings, [Ending::Exit(9), Ending::CutOff, Ending::Dropped, Ending::Exit(127)]);
}

#[test]
fn what_happens_behind_ones_back() {
    let fake = running();
    fake.log("a", Stream::Err, "ouch");
    let query = LogQuery { tail: 1, since: None, stream: None };
    assert_eq!(now(fake.logs("a", query)).unwrap()[0].text, "ouch");
    fake.run_out_of_memory("a");
    assert_eq!(see(&fake).phase, Phase::Exited { code: Some(137), out_of_memory: true });
    fake.vanish("a");
    assert_eq!(now(fake.container("a")), Ok(None));
    fake.vanish_network("net");
    let error = now(fake.ensure_container(&spec("a"))).unwrap_err();
    assert!(matches!(error, EngineError::Missing(_)), "{error:?}");
    assert_eq!((fake.containers().len(), fake.networks().len()), (0, 0));
}

#[test]
fn the_disk_holds_what_it_is_told_until_that_goes() {
    let fake = running();
    now(fake.ensure_volume("vol", &labels())).unwrap();
    fake.add_foreign_volume("foreign");
    let held = |fake: &Fake| {
        let held = now(fake.disk_use(&labels())).unwrap();
        (held.volumes.into_iter().collect::<Vec<_>>(), held.containers.into_iter().collect())
    };
    let of = |name: &str, bytes| vec![(name.to_owned(), Some(bytes))];
    assert_eq!(held(&fake), (of("vol", 0), of("a", 0)));
    fake.set_volume_bytes("vol", 8);
    fake.set_written_bytes("a", 3);
    fake.kill("a");
    assert_eq!(held(&fake), (of("vol", 8), of("a", 3)));
    fake.inject(Operation::DiskUse, InjectedFault::FailBefore, Times::Once);
    assert!(is_unreachable(now(fake.disk_use(&labels()))));
    fake.vanish("a");
    now(fake.remove_volume("vol")).unwrap();
    assert_eq!(held(&fake), (vec![], vec![]));
    // What comes back is empty.
    now(fake.ensure_volume("vol", &labels())).unwrap();
    now(fake.ensure_container(&spec("a"))).unwrap();
    assert_eq!(held(&fake), (of("vol", 0), of("a", 0)));
}

#[test]
fn a_published_image_is_pulled_by_its_digest() {
    let fake = Fake::default();
    let digest = fake.publish("registry.example/app:1");
    assert_eq!(now(fake.resolve("registry.example/app:1", None)).unwrap(), digest);
    let reference = format!("registry.example/app@{digest}");
    let image = now(fake.ensure_image(&reference, None)).unwrap();
    assert_eq!((image.tags, image.digests), (vec![], vec![reference]));
}
