//! Keyless CI: jobs that prove their identity with a token of an independent issuer.

use crate::support::{
    load::together,
    oidc::Issuer,
    requires,
    service::{Answer, Person, Service, fixture},
};
use serde_json::{Value, json};
use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

struct World {
    issuer: Issuer,
    service: Service,
    ada: Person,
    app: Value,
}

impl World {
    /// `None` where a program that the test needs is missing.
    fn new(test: &str) -> Option<World> {
        if !requires::node_packages(test, "oidc") {
            return None;
        }
        let issuer = Issuer::start();
        let unlimited = ("SVC_ANONYMOUS_TIER", "enterprise");
        let service = Service::start_with(&[("SVC_OIDC_ISSUERS", &issuer.url), unlimited]);
        let ada = service.register("ada");
        let (_, app) = service.project_with_app(&ada, None);
        Some(World { issuer, service, ada, app })
    }

    fn trust(&self, app: &Value, more: Value) -> Answer {
        let mut params =
            json!({"appId": app, "repository": "acme/app", "workflow": "svc-build.yml"});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.service.call(Some(&self.ada), "svc_addTrustedPublisher", params)
    }

    /// The claims of a job, with some of them altered.
    fn claims(&self, altered: &Value) -> Value {
        let mut claims = json!({
            "aud": self.service.url,
            "sub": "repo:acme/app:ref:refs/heads/main",
            "repository": "acme/app",
            "repository_id": "7",
            "repository_owner": "acme",
            "repository_owner_id": "8",
            "workflow_ref": "acme/app/.github/workflows/svc-build.yml@refs/heads/main",
            "job_workflow_ref": "acme/svc-ci/.github/workflows/svc-build.yml@refs/tags/v1",
            "event_name": "workflow_dispatch",
            "run_id": "42",
            "run_attempt": "1",
            "sha": "c0ffee",
            "ref": "refs/heads/main",
            "actor": "ada",
        });
        claims.as_object_mut().unwrap().extend(altered.as_object().unwrap().clone());
        claims
    }

    fn token(&mut self, kind: &str, altered: Value) -> String {
        let claims = self.claims(&altered);
        self.issuer.token(kind, &claims)
    }

    fn exchange(&self, token: &str, app: Option<&Value>) -> Answer {
        let mut body = json!({"token": token});
        if let Some(app) = app {
            body["appId"] = app.clone();
        }
        let request = self.service.http.post(format!("{}/api/v1/oidc/exchange", self.service.url));
        Service::answer(request.json(&body).send().unwrap()).unwrap()
    }

    fn refused(&self, token: &str, why: &str) {
        let answer = self.exchange(token, Some(&self.app));
        assert_eq!((answer.status, &answer.body["code"]), (401, &json!(119)), "{}", answer.body);
        let said = answer.body["error"].as_str().unwrap();
        assert!(said.contains(why), "{why}: {said}");
    }
}

#[test]
fn a_job_uploads_without_a_secret() {
    let Some(mut world) = World::new("a_job_uploads_without_a_secret") else { return };
    if !requires::programs("a_job_uploads_without_a_secret", &["bash", "curl", "jq"]) {
        return;
    }
    let publisher = world.trust(&world.app, json!({})).ok();
    assert_eq!(
        (&publisher["issuer"], &publisher["repositoryId"]),
        (&json!(world.issuer.url), &Value::Null)
    );
    // The claims that the CI puts into the next tokens.
    world.token("good", json!({}));

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("ci/upload/upload.sh");
    let upload = || {
        let mut bash = Command::new("bash");
        bash.arg(&script).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        bash.env("ACTIONS_ID_TOKEN_REQUEST_URL", &world.issuer.endpoint);
        bash.env("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of-the-job");
        bash.env("SVC_API_URL", &world.service.url).env("SVC_APP_ID", world.app.as_str().unwrap());
        bash.env("ARTIFACT", fixture("sample.apk")).env("PLATFORM", "android");
        bash.env("CREATE_RELEASE", "true").output().unwrap()
    };
    let done = upload();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let err = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}{err}");
    assert!(said.contains("::add-mask::svc_dt_"), "{said}");

    let call = |function: &str| {
        world.service.call(Some(&world.ada), function, json!({"appId": world.app})).ok()
    };
    let artifact = &call("svc_getArtifacts")["items"][0];
    assert_eq!((&artifact["trust"], &artifact["state"]), (&json!("oidc"), &json!("verified")));
    let proven = json!({"path": "external-ci", "repository": "acme/app", "commit": "c0ffee",
        "ref": "refs/heads/main", "claimed": false});
    for (field, value) in proven.as_object().unwrap() {
        assert_eq!(&artifact["provenance"][field], value, "{field}: {artifact}");
    }
    assert_eq!(call("svc_getReleases")["items"][0]["version"], "1.4.2");
    let publisher = &call("svc_getTrustedPublishers")["items"][0];
    assert_eq!(
        (&publisher["repositoryId"], &publisher["repositoryOwnerId"]),
        (&json!("7"), &json!("8"))
    );

    // The token of a job is that of its app, and of its two scopes.
    let tokens = call("svc_getDeployTokens");
    let token = &tokens["items"][0];
    assert_eq!((&token["name"], &token["appId"]), (&json!("run 42 of acme/app"), &world.app));
    assert_eq!(token["scopes"], json!(["artifact:upload", "release:create"]));

    // A workflow that is trusted no longer gets nothing.
    let removed = json!({"publisherId": publisher["id"]});
    world.service.call(Some(&world.ada), "svc_removeTrustedPublisher", removed).ok();
    let done = upload();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(!done.status.success() && said.contains("svc_addTrustedPublisher"), "{said}");
}

/// The tokens of the jobs have the standing of the memberships of whoever adds the publisher.
#[test]
fn a_superadmin_adds_a_publisher_only_where_they_are_a_member() {
    let service = Service::start();
    let (ada, admin) = (service.register("ada"), service.administrator());
    let acme = json!({"name": "Acme"});
    let acme = service.call(Some(&ada), "createOrganization", acme).ok()["id"].clone();
    let (_, app) = service.project_with_app(&ada, Some(&acme));
    let add = || {
        let params = json!({"appId": app, "repository": "acme/app", "workflow": "svc-build.yml"});
        service.call(Some(&admin), "svc_addTrustedPublisher", params)
    };
    let refused = add();
    assert_eq!(refused.refusal(), (409, 119), "{}", refused.body);
    let why = refused.body["error"].as_str().unwrap();
    assert!(why.contains("join it first") && why.contains("owners and admins"), "{why}");
    let invited = json!({"organizationId": acme, "email": admin.email, "role": "admin"});
    let token = service.call(Some(&ada), "inviteMember", invited).ok()["acceptToken"].clone();
    service.call(Some(&admin), "acceptInvitation", json!({"token": token})).ok();
    assert_eq!(add().ok()["createdBy"], admin.id);
}

#[test]
fn what_strangers_trust_changes_nothing_for_an_app() {
    let Some(mut world) = World::new("what_strangers_trust_changes_nothing_for_an_app") else {
        return;
    };
    world.trust(&world.app, json!({})).ok();
    // Everybody may name any repository, and any workflow of it.
    let mallory = world.service.register("mallory");
    let (project, _) = world.service.project_with_app(&mallory, None);
    let apps: Vec<_> = (0..10)
        .map(|n| {
            let params = json!({"projectId": project, "name": format!("copy {n}")});
            world.service.call(Some(&mallory), "createApp", params).ok()["id"].clone()
        })
        .collect();
    together(10, |n| {
        for workflow in 0..20 {
            let file = if workflow == 0 { "svc-build.yml" } else { &format!("w{workflow}.yml") };
            let params = json!({"appId": apps[n], "repository": "acme/app", "workflow": file});
            world.service.call(Some(&mallory), "svc_addTrustedPublisher", params).ok();
        }
    });
    let token = world.token("good", json!({}));
    assert_eq!(world.exchange(&token, None).refusal(), (400, 142));
    let exchanged = world.exchange(&token, Some(&world.app));
    assert_eq!((exchanged.status, &exchanged.body["appId"]), (200, &world.app));
    // An audience that names the app keeps the token from being used for another one.
    let audience = format!("{}/apps/{}", world.service.url, world.app.as_str().unwrap());
    let token = world.token("good", json!({"aud": audience}));
    assert_eq!(world.exchange(&token, Some(&apps[0])).status, 401);
    assert_eq!(world.exchange(&token, None).body["appId"], world.app);
}

#[test]
fn no_attack_on_an_identity_succeeds() {
    let Some(mut world) = World::new("no_attack_on_an_identity_succeeds") else { return };
    let conditions = json!({"environment": "production", "ref": "refs/heads/main"});
    let publisher = world.trust(&world.app, conditions.clone()).ok();
    let usual = json!(["push", "release", "workflow_dispatch", "schedule"]);
    assert_eq!((&publisher["ref"], &publisher["events"]), (&json!("refs/heads/main"), &usual));
    assert_eq!(world.trust(&world.app, conditions).refusal(), (409, 137));
    for wrong in [
        json!({"events": ["push", "pull_request_target"]}),
        json!({"events": ["Push"]}),
        json!({"ref": "main"}),
        json!({"ref": "refs/*/main"}),
    ] {
        assert_eq!(world.trust(&world.app, wrong.clone()).refusal(), (400, 142), "{wrong}");
    }
    let elsewhere = json!({"issuer": "https://evil.example.com"});
    assert_eq!(world.trust(&world.app, elsewhere).refusal(), (400, 142));
    let in_production = |more: Value| {
        let mut altered = json!({"environment": "production"});
        altered.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        altered
    };

    for (kind, altered, why) in [
        ("good", json!({"aud": "https://other.example.com"}), "its audience must be"),
        ("good", json!({"exp": 1_700_000_000}), "has expired"),
        ("good", json!({"nbf": 4_000_000_000_u64}), "not valid yet"),
        ("good", json!({"iat": 4_000_000_000_u64, "exp": 4_000_000_300_u64}), "not plausible"),
        ("good", json!({"iss": "https://evil.example.com"}), "its issuer is not one"),
        ("forged", json!({}), "its signature is wrong"),
        ("unknownKey", json!({}), "its key is not one of the issuer"),
        ("none", json!({}), "cannot be read"),
        ("hs256", json!({}), "of the kind HS256, not RS256 or ES256"),
        ("es256ByRsaKey", json!({}), "its key is not for such signatures"),
        ("es256Forged", json!({}), "its signature is wrong"),
        ("good", json!({"event_name": "pull_request_target"}), "only runs begun by push"),
        ("good", json!({"event_name": "issue_comment"}), "only runs begun by push"),
        ("good", json!({"ref": "refs/heads/develop"}), "only runs of refs/heads/main"),
        ("good", json!({"environment": "preview"}), "the environment production"),
        (
            "good",
            json!({"workflow_ref": "acme/app/.github/workflows/evil.yml@refs/heads/main"}),
            "evil.yml",
        ),
        (
            "good",
            json!({"workflow_ref": "acme/other/.github/workflows/svc-build.yml@v1"}),
            "acme/other",
        ),
        ("good", json!({"repository": "acme/other"}), "svc_addTrustedPublisher"),
        ("good", json!({"repository_id": null}), "repository_id"),
    ] {
        let token = world.token(kind, in_production(altered));
        world.refused(&token, why);
    }
    for malformed in ["", "a.b", "a.b.c.d", "a.b.ü"] {
        let answer = world.exchange(malformed, None);
        assert_eq!((answer.status, &answer.body["code"]), (400, &json!(142)), "{malformed}");
    }

    // Of sixteen exchanges of one token, one succeeds.
    let token = world.token("good", in_production(json!({})));
    let answers = together(16, |_| world.exchange(&token, Some(&world.app)).status);
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|status| **status == 401).count(), 15, "{answers:?}");
    world.refused(&token, "exchanged before");

    // The first exchange fixed the repository: another one of the same name is refused.
    for altered in [json!({"repository_id": "70"}), json!({"repository_owner_id": "80"})] {
        let token = world.token("good", in_production(altered));
        world.refused(&token, "another repository with the same name");
    }

    // A job says for which app it works, in the request or in the audience.
    let (_, other) = world.service.project_with_app(&world.ada, None);
    world.trust(&other, json!({})).ok();
    let token = world.token("good", in_production(json!({})));
    let nameless = world.exchange(&token, None);
    assert_eq!(nameless.refusal(), (400, 142), "{}", nameless.body);
    assert!(nameless.body["error"].as_str().unwrap().contains("/apps/{appId}"));
    let exchanged = world.exchange(&token, Some(&other));
    assert_eq!((exchanged.status, &exchanged.body["appId"]), (200, &other), "{}", exchanged.body);
    let audience = format!("{}/apps/{}", world.service.url, other.as_str().unwrap());
    let token = world.token("good", in_production(json!({"aud": audience})));
    world.refused(&token, "the identity token is for");
    let exchanged = world.exchange(&token, None);
    assert_eq!((exchanged.status, &exchanged.body["appId"]), (200, &other), "{}", exchanged.body);

    // Some issuers sign with ES256.
    let token = world.token("es256", in_production(json!({})));
    let exchanged = world.exchange(&token, Some(&world.app));
    assert_eq!(exchanged.status, 200, "{}", exchanged.body);

    // The issuer replaces its key: the service reads the new one, and forgets the old one.
    world.token("rotate", json!({}));
    let begun = Instant::now();
    loop {
        let token = world.token("good", in_production(json!({})));
        let answer = world.exchange(&token, Some(&world.app));
        if answer.status == 200 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{}", answer.body);
        std::thread::sleep(Duration::from_millis(500));
    }
    let token = world.token("retired", in_production(json!({})));
    world.refused(&token, "its key is not one of the issuer");
}
