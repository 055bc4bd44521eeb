//! Attestations of builds, and channels that demand them.

use crate::support::{
    load::together,
    requires,
    service::{Answer, Person, Service, eventually, fixture, sha256},
    sigstore::Sigstore,
};
use serde_json::{Value, json};
use std::{path::Path, process::Command};

const SIGNER: &str = "acme/svc-ci/.github/workflows/svc-build.yml";

struct World {
    // Ends first, while what it talks to is there.
    service: Service,
    sigstore: Sigstore,
    /// The folder of the trusted roots.
    roots: tempfile::TempDir,
    ada: Person,
    app: Value,
}

impl World {
    /// An app that trusts the workflow of `acme/app`. `None` where a program that the test needs is
    /// missing.
    fn new(test: &str) -> Option<World> {
        if !requires::node_packages(test, "sigstore") {
            return None;
        }
        let (sigstore, roots) = (Sigstore::start(), tempfile::tempdir().unwrap());
        std::fs::copy(sigstore.root(), roots.path().join("ours.json")).unwrap();
        let folder = roots.path().to_str().unwrap().to_owned();
        let service = Service::start_with(&[("SVC_TRUSTED_ROOTS", &folder)]);
        let ada = service.register("ada");
        let (_, app) = service.project_with_app(&ada, None);
        let world = World { sigstore, roots, service, ada, app };
        let publisher =
            json!({"appId": world.app, "repository": "acme/app", "workflow": "svc-build.yml"});
        world.call("svc_addTrustedPublisher", publisher).ok();
        // Another app trusts another repository.
        let mallory = world.service.register("mallory");
        let (_, other) = world.service.project_with_app(&mallory, None);
        let theirs =
            json!({"appId": other, "repository": "mallory/app", "workflow": "svc-build.yml"});
        world.service.call(Some(&mallory), "svc_addTrustedPublisher", theirs).ok();
        Some(world)
    }

    fn call(&self, function: &str, params: Value) -> Answer {
        self.service.call(Some(&self.ada), function, params)
    }

    /// The hash of a fixture.
    fn hash(file: &str) -> String {
        sha256(&std::fs::read(fixture(file)).unwrap())
    }

    /// The attestation of a fixture, with some of the claims altered.
    fn attest(&self, file: &str, altered: Value) -> Value {
        self.sigstore.attest(&World::hash(file), &altered)
    }

    fn finalize(&self, artifact: &str, file: &str, more: Value) -> Answer {
        let mut request = json!({"sha256": World::hash(file)});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.service.post(Some(&self.ada), &format!("{artifact}/finalize"), &request)
    }

    fn artifact(&self, id: &str) -> Value {
        self.call("svc_getArtifact", json!({"artifactId": id})).ok()
    }

    fn policy(&self, conditions: Value) -> Value {
        let mut policy = json!({"appId": self.app, "channel": "production"});
        policy.as_object_mut().unwrap().extend(conditions.as_object().unwrap().clone());
        self.call("svc_setChannelPolicy", policy).ok()["channelPolicies"].clone()
    }
}

fn refused(answer: &Answer, code: i64, why: &str) {
    assert_eq!(answer.refusal().1, code, "{}", answer.body);
    let said = answer.body["error"].as_str().unwrap();
    assert!(said.contains(why), "{why}: {said}");
}

#[test]
fn an_attested_artifact_shows_which_run_built_it() {
    let Some(world) = World::new("an_attested_artifact_shows_which_run_built_it") else { return };
    let file = "sample.apk";
    let artifact = world.service.send(&world.ada, &world.app, file, None);

    // What proves nothing changes nothing: the upload can still be finalized.
    let ours = || world.attest(file, json!({}));
    let other_file = world.sigstore.attest(&"0".repeat(64), &json!({}));
    let other_instance = Sigstore::start();
    let foreign = other_instance.attest(&World::hash(file), &json!({}));
    let mut forged = ours();
    forged["dsseEnvelope"]["signatures"][0]["sig"] =
        other_file["dsseEnvelope"]["signatures"][0]["sig"].clone();
    for (bundle, why) in [
        (json!({}), "bundle"),
        (json!({"mediaType": "text/plain"}), "bundle"),
        (other_file, "SHA-256"),
        (foreign.clone(), "log"),
        (forged, "signature"),
        (
            world.attest(file, json!({"repository": "mallory/app", "owner": "mallory"})),
            "the app does not trust mallory/app",
        ),
        (world.attest(file, json!({"event": "pull_request_target"})), "pull_request_target"),
        (world.attest(file, json!({"issuer": "https://evil.example.com"})), "another issuer"),
        (
            world.attest(
                file,
                json!({"workflow": "acme/app/.github/workflows/x.yml@refs/heads/main"}),
            ),
            "is not trusted",
        ),
    ] {
        refused(&world.finalize(&artifact, file, json!({"attestation": bundle})), 142, why);
        assert_eq!(world.artifact(&artifact)["state"], "pending", "{why}");
    }

    // Sixteen at once.
    let bundle = ours();
    let answers =
        together(16, |_| world.finalize(&artifact, file, json!({"attestation": bundle.clone()})));
    for answer in &answers {
        assert!([200, 201].contains(&answer.status), "{}", answer.body);
        assert_eq!(answer.body["trust"], "attested");
    }
    let shown = world.artifact(&artifact);
    let expected = json!({
        "repository": "acme/app", "repositoryId": "7", "repositoryOwnerId": "8",
        "workflow": "acme/app/.github/workflows/svc-build.yml@refs/heads/main",
        "signerWorkflow": format!("{SIGNER}@refs/tags/v1"),
        "commit": "c0ffee0000000000000000000000000000000000", "ref": "refs/heads/main",
        "runUrl": "https://github.com/acme/app/actions/runs/42/attempts/1",
        "runnerEnvironment": "github-hosted",
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&shown["attestation"][field], value, "{field}: {shown}");
    }
    let provenance = &shown["provenance"];
    assert_eq!(
        (&provenance["claimed"], &provenance["commit"]),
        (&json!(false), &expected["commit"])
    );

    // From now on, another repository of the same name is a stranger.
    let renamed = world.attest(file, json!({"repositoryId": "70"}));
    refused(&world.finalize(&artifact, file, json!({"attestation": renamed})), 142, "same name");

    // The operator trusts another instance. A file that is no root changes nothing.
    let root = world.roots.path().join("theirs.json");
    std::fs::write(&root, "{}").unwrap();
    assert_eq!(world.finalize(&artifact, file, json!({"attestation": ours()})).status, 200);
    std::fs::copy(other_instance.root(), &root).unwrap();
    eventually("the new root is used", || {
        world.finalize(&artifact, file, json!({"attestation": foreign})).status == 200
    });
    std::fs::remove_file(world.roots.path().join("ours.json")).unwrap();
    refused(&world.finalize(&artifact, file, json!({"attestation": ours()})), 142, "log");
}

#[test]
fn a_channel_takes_only_what_its_policy_allows() {
    let test = "a_channel_takes_only_what_its_policy_allows";
    let Some(world) = World::new(test) else { return };
    if !requires::programs(test, &["bash", "curl", "jq"]) {
        return;
    }
    let file = "sample.apk";
    let plain = world.service.upload(&world.ada, &world.app, file, "1.4.2");
    let id = plain["id"].as_str().unwrap();
    let create = |channel: &str| {
        let release = json!({"appId": world.app, "artifactIds": [id], "channel": channel});
        world.call("svc_createRelease", release)
    };

    // The draft was made before the channel demanded anything.
    let draft = create("production").ok();
    let policies = world.policy(json!({"minimumTrust": "attested", "attestedBy": SIGNER}));
    assert_eq!(policies[0]["minimumTrust"], "attested");
    let publish = || {
        let wanted = json!({"releaseId": draft["id"], "targets": ["ota"]});
        world.call("svc_publishRelease", wanted)
    };
    refused(&publish(), 119, "has the trust unverified");
    world.call("svc_deleteRelease", json!({"releaseId": draft["id"]})).ok();
    refused(&create("production"), 119, "with the trust attested or more");
    create("preview").ok();
    let release = json!({"createRelease": {"channel": "production"}});
    refused(&world.finalize(id, file, release), 119, "is verified, but not in a release");

    // The job of the trusted workflow uploads with its attestation.
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("attestation.json");
    std::fs::write(&bundle, world.attest(file, json!({})).to_string()).unwrap();
    let scopes = json!({"name": "ci", "scopes": ["artifact:upload", "release:create"]});
    let ci = world.service.with_token(&world.ada, scopes);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("ci/upload/upload.sh");
    let mut bash = Command::new("bash");
    bash.arg(&script).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    bash.env("SVC_API_URL", &world.service.url).env("SVC_APP_ID", world.app.as_str().unwrap());
    bash.env("SVC_TOKEN", &ci.token).env("ARTIFACT", fixture(file)).env("PLATFORM", "android");
    bash.env("ATTESTATION", &bundle).env("CREATE_RELEASE", "true");
    let done = bash.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    assert_eq!(world.artifact(id)["trust"], "attested", "the same bytes are the same artifact");
    let releases =
        world.call("svc_getReleases", json!({"appId": world.app, "channel": "production"}));
    let release = releases.ok()["items"][0].clone();
    assert_eq!(release["artifactIds"], json!([id]));

    // So does the command line.
    let app = world.app.as_str().unwrap();
    let settings = [
        ("SVC_TOKEN", ci.token.as_str()),
        ("SVC_API_URL", &world.service.url),
        ("SVC_APP_ID", app),
    ];
    let (path, bundle) = (fixture(file), bundle.to_str().unwrap());
    let args = ["publish", path.to_str().unwrap(), "--attestation", bundle, "--channel", "beta"];
    let published = world.service.cli_json(&args, &settings);
    assert_eq!(published["artifact"]["trust"], "attested");

    // Each condition by itself.
    let publish = || {
        let wanted = json!({"releaseId": release["id"], "targets": ["ota"]});
        world.call("svc_publishRelease", wanted)
    };
    let signer = world.artifact(id)["signer"]["sha256"].clone();
    for (condition, why) in [
        (json!({"signer": "0".repeat(64)}), "is signed with"),
        (json!({"attestedBy": format!("{SIGNER}@refs/tags/v2")}), "is attested by"),
        (json!({"attestedBy": "acme/app/.github/workflows/svc-build.yml"}), "is attested by"),
    ] {
        world.policy(condition);
        refused(&publish(), 119, why);
    }
    let all = json!({"minimumTrust": "attested", "attestedBy": format!("{SIGNER}@refs/tags/v1"), "signer": signer});
    world.policy(all);
    assert_eq!(publish().ok()["state"], "published");
    assert_eq!(world.policy(json!({})), json!([]));
    let mallory = world.service.register("eve");
    let foreign = json!({"appId": world.app, "channel": "production", "minimumTrust": "token"});
    let stranger = world.service.call(Some(&mallory), "svc_setChannelPolicy", foreign);
    assert_eq!(stranger.refusal(), (404, 101));
}
