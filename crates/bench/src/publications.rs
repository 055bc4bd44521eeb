//! Publications: versions in review that are followed.

use crate::{
    Pace,
    builds::{now, own, rate},
    client::Client,
    helper::Helper,
    machine,
    outcome::{Explain, Outcome},
    seed,
    server::Server,
    table::Row,
};
use actors::{
    kinds::delivery::{
        artifacts::Artifacts,
        publications::{Ordered, Publications, State},
    },
    ports::random::Random,
    runtime::resource::Kept,
};
use app_stores::{DesiredState, Options, Progress};
use contract::{
    AppId, ArtifactId, CredentialId, PublicationId, Timestamp,
    releases::{Publication, PublicationState, Target},
};
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};
use store::Change;

pub const METHOD: &str = "2,000 versions are in review at the App Store when the service starts; \
    timed is until it has looked at each once, at a server that says that nothing changed, and \
    signed in there. The service writes when the next look is due, durably. The yardstick is a \
    client that sends as many requests to that server, two at a time. Multiplied by the pause \
    between two looks, five minutes, the rate is the number of publications that can be followed.";

const FOLLOWED: usize = 2_000;
const AIM: f64 = 0.4;
const BINDS: &str =
    "processor time: each look has an owner, a change of its record and a signed request.";
/// The pause between two looks at a review, in seconds.
const PAUSE: f64 = 300.0;
/// Where every version stands.
pub const WORDS: &str = "WAITING_FOR_REVIEW";

pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let store = Helper::start("app-store", [])?;
    let address = format!("http://{}", store.address);
    let settings = [
        ("SVC_APP_STORE_CONNECT_URL", address.as_str()),
        ("SVC_DOCKER_HOST", "unix:///nonexistent"),
    ];
    let start = || Server::start_with(home.path(), pace.http_workers(), &settings);
    let server = start()?;
    let owned = own(&server)?;
    let set = json!({
        "appId": owned.app, "kind": "appStoreConnectKey", "name": "main", "keyId": "ABCDE12345",
        "issuerId": "57246542-96fe-1a63-e053-0824d011072a", "data": key(home.path())?,
    });
    let stored = server.client.call(Some(&owned.session), "svc_setCredential", &set)?;
    let credential: CredentialId = stored.text("/result/id")?.parse().or_say("the credential")?;
    let stored_at = stored.text("/result/updatedAt")?.parse().or_say("its time")?;
    server.stop()?;
    in_review(home.path(), owned.app.parse().or_say("the app")?, (credential, stored_at))?;

    let client = Client::to(store.address);
    let looks = || -> Outcome<f64> {
        let answer = client.get("/looks").or_say("the looks")?;
        answer.body.as_f64().or_say("the looks")
    };
    let begun = Instant::now();
    let _server = start()?;
    while looks()? < FOLLOWED as f64 {
        if begun.elapsed() > Duration::from_secs(120) {
            return Err("the service does not look at its publications".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let ours = FOLLOWED as f64 / begun.elapsed().as_secs_f64();
    let bare = rate(2, pace.seconds, |_, _| {
        client.get("/v1/appStoreVersions/1").or_say("the version").map(|_| ())
    })?;
    let text = |looks: f64, who: &str| {
        let text = format!("{:.0} ({looks:.0} looks/s){who}", looks * PAUSE);
        (looks, text)
    };
    Ok(vec![
        Row::new("publications followed at a time", text(ours, ""), text(bare, ", a client"))
            .at_least(AIM, BINDS),
    ])
}

/// A key of App Store Connect, as base64 of its file.
fn key(folder: &Path) -> Outcome<String> {
    let file = folder.join("key.p8");
    let mut openssl = Command::new("openssl");
    openssl.args(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out"]);
    openssl.arg(&file).status().or_say("openssl")?;
    Ok(BASE64.encode(&std::fs::read(&file).or_say("the key")?))
}

/// Writes publications in review to the store of a stopped service. The use of their credential is
/// in the audit log already.
fn in_review(home: &Path, app: AppId, used: (CredentialId, Timestamp)) -> Outcome<()> {
    let store = seed::open(home)?;
    let random = Random::default();
    let artifact: ArtifactId = random.id(now());
    let upload = seed::artifact(artifact, app, random.id(now()))?;
    let mut change = Change::new().create::<Artifacts>(&artifact, Kept::at_rest(upload));
    for number in 0..FOLLOWED {
        let id: PublicationId = random.id(now());
        let publication = Publication {
            id,
            release_id: random.id(now()),
            artifact_id: artifact,
            target: Target::AppStore,
            state: PublicationState::InReview,
            rollout: None,
            store_state: Some(WORDS.into()),
            remote_id: Some(number.to_string()),
            url: None,
            error: None,
            log: Vec::new(),
            updated_at: now(),
        };
        let everybody = DesiredState::Released(None);
        let state = State {
            publication,
            app_id: app,
            order: Ordered {
                default_notes: None,
                notes: BTreeMap::new(),
                options: Options::AppStore(Default::default()),
                rollout: None,
            },
            wanted: everybody,
            fulfilled: Some(everybody),
            at_rest: true,
            progress: submitted(number)?,
            unreported: false,
            due: Some(now()),
            moved_at: now(),
            unclear: 0,
            used: Some(used),
        };
        let kept = Kept { awake: true, ..Kept::at_rest(state) };
        change = change.create::<Publications>(&id, kept);
    }
    actix_rt::System::new().block_on(seed::commit(&store, change))?;
    store.close();
    Ok(())
}

/// The progress of a version that Apple reviews.
fn submitted(number: usize) -> Outcome<Progress> {
    let version: Value = json!({
        "checked": true, "version": number.to_string(), "attached": true, "noted": true,
        "phasesSet": true, "submission": "1", "listed": true, "submitted": true, "words": WORDS,
    });
    serde_json::from_value(json!({"appStore": version})).or_say("the progress")
}
