//! Webhooks: deliveries of events that wait in the outbox.

use crate::{
    Pace,
    client::Client,
    group_commit::{GroupCommit, Rows},
    helper::Helper,
    machine,
    outcome::{Explain, Outcome},
    seed,
    server::Server,
    table::Row,
};
use actors::{
    kinds::events::webhooks::{
        outbox::Outgoing,
        signature::{Secret, headers},
    },
    ports::random::Random,
};
use contract::{MessageId, OrganizationId, Timestamp, webhooks::EventType};
use serde_json::json;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};
use store::Change;

pub const METHOD: &str = "1,000 events of an organization with 8 webhooks wait when the service \
    starts; timed is until a receiver on this machine got all 8,000 requests. For each of them, the \
    service writes the delivery before the request and its outcome after it, durably. One yardstick \
    is a client that signs and posts the same bytes to the same receiver, on as many connections as \
    the service has at a time, and makes three rows of 500 bytes durable before each request and \
    after it. The other one writes nothing.";

const EVENTS: u64 = 1_000;
const WEBHOOKS: u64 = 8;
/// Requests to one webhook that the service has under way at a time.
const OF_ONE: u64 = 8;
const AIM: f64 = 0.4;
const AIM_OF_PLAIN: f64 = 0.1;
const BINDS: &str = "processor time: each delivery has an owner and two changes, with the counts \
    beside them, and a client that checks where it connects to.";
/// How long the deliveries may take.
const WITHIN: Duration = Duration::from_secs(300);

pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let receiver = Helper::start("receiver", [])?;
    let host = receiver.address.to_string();
    let settings =
        [("SVC_WEBHOOK_PRIVATE_HOSTS", host.as_str()), ("SVC_DOCKER_HOST", "unix:///nonexistent")];
    let start = || Server::start_with(home.path(), pace.http_workers(), &settings);
    let server = start()?;
    let organization = subscribe(&server, &host)?;
    server.stop()?;
    let payload = payload();
    let store = seed::open(home.path())?;
    let random = Random::default();
    let event = Outgoing {
        organization_id: organization,
        event: EventType::ArtifactVerified,
        payload: payload.clone(),
    };
    let events = (0..EVENTS).fold(Change::new(), |change, _| {
        change.append::<Outgoing>(&random.id(Timestamp::from_millis(1)), &event)
    });
    actix_rt::System::new().block_on(seed::commit(&store, events))?;
    store.close();
    drop(store);

    let deliveries = EVENTS * WEBHOOKS;
    let begun = Instant::now();
    let server = start()?;
    let client = Client::to(receiver.address);
    loop {
        let received = client.get("/received").and_then(|answer| answer.body.as_u64());
        if received.or_say("the count of the receiver")? >= deliveries {
            break;
        }
        if begun.elapsed() > WITHIN {
            return Err("the service does not deliver its events".into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let ours = deliveries as f64 / begun.elapsed().as_secs_f64();
    server.stop()?;
    let commit = GroupCommit::start(&home.path().join("bare"), Rows::Three)?;
    let by_hand = |commit| by_hand(receiver.address, &payload, commit, pace.seconds);
    let (durable, plain) = (by_hand(Some(&commit))?, by_hand(None)?);
    let row = |(rate, who): (f64, &str)| {
        let what = "deliveries of events to webhooks";
        Row::new(what, (ours, format!("{ours:.0}/s")), (rate, format!("{rate:.0}/s, {who}")))
    };
    Ok(vec![
        row((durable, "a client that signs and posts, and writes durably before and after"))
            .at_least(AIM, BINDS),
        row((plain, "a client that signs and posts")).at_least(AIM_OF_PLAIN, BINDS),
    ])
}

/// Makes the webhooks. Returns their organization.
fn subscribe(server: &Server, host: &str) -> Outcome<OrganizationId> {
    let session = server.register(1)?.pop().or_say("a session")?;
    let call = |function, params| server.client.call(Some(&session), function, &params);
    let organization = call("createOrganization", json!({"name": "Webhooks"}))?;
    let organization = organization.text("/result/id")?;
    for webhook in 0..WEBHOOKS {
        let url = format!("http://{host}/hooks/{webhook}");
        call("svc_createWebhook", json!({"organizationId": organization, "url": url}))?;
    }
    organization.parse().or_say("the organization")
}

/// The body of an event of usual size.
pub fn payload() -> String {
    let artifact = json!({
        "id": "art_01J9ZQ8F5W7V3T6M2K4N8R0P1S", "platform": "android", "kind": "apk",
        "fileName": "app.apk", "size": 52_428_800, "sha256": "0".repeat(64), "version": "1.4.2",
        "provenance": {"path": "external-ci", "claimed": true, "commit": "0".repeat(40)},
        "trust": "token", "state": "verified", "createdAt": "2026-01-01T00:00:00.000Z",
    });
    let data = json!({"artifact": artifact, "appId": "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S"});
    json!({"type": "artifact.verified", "timestamp": "2026-01-01T00:00:00.000Z", "data": data})
        .to_string()
}

/// How many requests a second a client makes that signs each of them, and writes before and after it.
fn by_hand(
    receiver: SocketAddr,
    payload: &str,
    commit: Option<&GroupCommit>,
    seconds: u64,
) -> Outcome<f64> {
    let secret = Secret::new(&Random::default()).or_say("a secret")?;
    let secrets = [secret];
    let (begun, done) = (Instant::now(), AtomicU64::new(0));
    let work = || {
        let random = Random::default();
        let mut stream = TcpStream::connect(receiver).or_say("the receiver")?;
        stream.set_nodelay(true).or_say("the receiver")?;
        while begun.elapsed() < Duration::from_secs(seconds) {
            commit.map_or(Ok(()), GroupCommit::write_blocking)?;
            let now = Timestamp::from_millis(1);
            let id: MessageId = random.id(now);
            let mut request = format!(
                "POST /hooks/0 HTTP/1.1\r\nhost: {receiver}\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\n",
                payload.len()
            );
            for (name, value) in headers(id, now, payload, &secrets) {
                request.push_str(&format!("{name}: {value}\r\n"));
            }
            request.push_str("\r\n");
            request.push_str(payload);
            stream.write_all(request.as_bytes()).or_say("the receiver")?;
            read_head(&mut stream)?;
            commit.map_or(Ok(()), GroupCommit::write_blocking)?;
            done.fetch_add(1, Relaxed);
        }
        Outcome::Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WEBHOOKS * OF_ONE).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(_) => Err("a thread panicked".into()),
        })
    })?;
    Ok(done.into_inner() as f64 / begun.elapsed().as_secs_f64())
}

/// Reads a reply without a body.
fn read_head(stream: &mut TcpStream) -> Outcome<()> {
    let (mut reply, mut piece) = (Vec::new(), [0; 1024]);
    while !reply.ends_with(b"\r\n\r\n") {
        let read = stream.read(&mut piece).or_say("the reply")?;
        if read == 0 {
            return Err("the receiver closed the connection".into());
        }
        reply.extend_from_slice(piece.get(..read).unwrap_or_default());
    }
    match reply.starts_with(b"HTTP/1.1 204") {
        true => Ok(()),
        false => Err(format!("the receiver says {}", String::from_utf8_lossy(&reply))),
    }
}
