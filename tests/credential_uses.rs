//! What credentials of apps are used for, and the warnings before they end.

use crate::support::{
    credentials::{HOST_TOKEN, World, files::Folder, said},
    git::Git,
    requires,
    service::eventually,
};
use serde_json::{Value, json};

#[test]
fn the_token_of_a_host_reads_repositories_that_have_none() {
    let test = "the_token_of_a_host_reads_repositories_that_have_none";
    if !requires::programs(test, &["git", "python3"]) {
        return;
    }
    let git = Git::serve();
    let Some(world) = World::new(test, &[("SVC_GIT_PRIVATE_HOSTS", &git.host)]) else { return };
    git.commit(&[("README.md", "an app".into())]);
    git.set("token", HOST_TOKEN);
    let connect = |more: Value| {
        let mut params = json!({"url": git.url});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.call("svc_connectRepository", params)
    };
    let fails = |repository: &Value, why: &str| {
        assert!(repository["error"].as_str().unwrap().contains(why), "{repository}");
    };

    fails(&connect(json!({})), "connect it with a token");
    // A token of another host, or of another port of the same one, stays where it is.
    for name in ["git.example.com", "127.0.0.1"] {
        let other = world.stored("repositoryHost", "token", &["--name", name], None);
        fails(&connect(json!({})), "connect it with a token");
        assert_eq!(world.events("useCredential", &other), 0);
        let checked = world.about("svc_checkCredential", &other);
        assert_eq!(checked.status, 409, "{}", checked.body);
    }

    let host = world.stored("repositoryHost", "token", &["--name", &git.host], None);
    let connected = connect(json!({}));
    assert_eq!((&connected["error"], &connected["hasToken"]), (&Value::Null, &json!(false)));
    eventually("the use is in the audit log", || world.events("useCredential", &host) == 1);
    let used = world.listed().into_iter().find(|credential| credential["id"] == host["id"]);
    assert!(used.unwrap()["lastUsedAt"].is_string());
    world.call("svc_checkRepository", json!({}));
    eventually("each use is in the audit log", || world.events("useCredential", &host) == 2);

    // The repository's own token comes first.
    fails(&connect(json!({"token": "its-own"})), "does not accept the token");
    assert_eq!(world.events("useCredential", &host), 2);
    connect(json!({}));

    let check = || {
        let output = world.service.cli(&["credential", "check", host["id"].as_str().unwrap()]);
        (output.status.success(), said(&output))
    };
    let (ok, told) = check();
    assert!(ok && told.contains("It reads"), "{told}");
    git.set("token", "another");
    let (ok, told) = check();
    assert!(!ok && told.contains("does not accept the token"), "{told}");
    assert_eq!(world.events("svc_checkCredential", &host), 2);
    let refused = world.call("svc_checkRepository", json!({}));
    fails(&refused, "does not accept the token");
}

#[test]
fn somebody_is_warned_30_7_and_1_days_before_the_end() {
    let test = "somebody_is_warned_30_7_and_1_days_before_the_end";
    // Without a mail server, mails are in the log.
    let Some(mut world) = World::new(test, &[]) else { return };
    let keystore = |folder: &Folder, days: u32| {
        folder.sh(&format!(
            "openssl req -x509 -newkey rsa:2048 -nodes -days {days} -keyout k.key -out k.pem \
             -subj '/CN=Example App' 2>&1
             openssl pkcs12 -export -inkey k.key -in k.pem -out {days}.p12 -passout pass:secret"
        ));
    };
    for (days, name) in [(40, "early"), (70, "late"), (20, "soon")] {
        keystore(&world.folder, days);
        let more = ["--name", name];
        world.stored("androidKeystore", &format!("{days}.p12"), &more, Some("secret"));
    }
    const DAY: u64 = 24 * 3600;
    let mut expected = Vec::new();
    // "soon" was stored with a warning in the reply, so its next one comes 7 days before the end.
    for (hours, mails) in [
        (1, &[][..]),
        (10 * 24 + 1, &["early expires within 30 days"]),
        (13 * 24 + 1, &["soon expires within 7 days"]),
        (13 * 24 + 2, &[]),
        (19 * 24 + 1, &["soon expires within a day"]),
        (33 * 24 + 1, &["early expires within 7 days"]),
        // The service was off when "late" had 30 and 7 days left, and when "early" had one.
        (69 * 24 + 1, &["early has expired", "late expires within a day"]),
        (75 * 24, &[]),
        // Nothing more comes, and nothing came twice.
        (75 * 24 + 1, &[]),
    ] {
        world.service.stop();
        world.service.set("SVC_CLOCK_AHEAD", &(hours * DAY / 24).to_string());
        world.service.boot();
        expected.extend(mails.iter().map(|mail| (*mail).to_owned()));
        let sent = || -> Vec<String> {
            let log = world.service.log();
            let all = ["early", "late", "soon"].into_iter().flat_map(|name| {
                [
                    "expires within 30 days",
                    "expires within 7 days",
                    "expires within a day",
                    "has expired",
                ]
                .map(|when| format!("{name} {when}"))
            });
            let counted = all.flat_map(|subject| {
                let count = log.matches(&format!("Shop: {subject}")).count();
                vec![subject; count]
            });
            counted.collect()
        };
        let mut wanted = expected.clone();
        wanted.sort();
        eventually(&format!("after {hours} hours: {wanted:?}"), || {
            let mut sent = sent();
            sent.sort();
            sent == wanted
        });
    }
}
