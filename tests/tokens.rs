//! Deploy tokens: how long they live, and what a CI job does with one.

use crate::support::{load::together, service::Service};
use serde_json::{Value, json};

/// The days from the creation of a token to its end.
fn days(made: &Value) -> Option<i64> {
    let moment = |field: &str| -> Option<i64> {
        let text = made["deployToken"][field].as_str()?;
        let (date, _) = text.split_once('T')?;
        let parts: Vec<i64> = date.split('-').map(|part| part.parse().unwrap()).collect();
        // Days of the Gregorian calendar since an epoch.
        let (year, month) =
            if parts[1] > 2 { (parts[0], parts[1]) } else { (parts[0] - 1, parts[1] + 12) };
        Some(365 * year + year / 4 - year / 100 + year / 400 + (153 * month - 457) / 5 + parts[2])
    };
    Some(moment("expiresAt")? - moment("createdAt")?)
}

#[test]
fn a_token_expires_in_ninety_days_unless_its_maker_says_otherwise() {
    let service = Service::start();
    let ada = service.register("ada");
    let make = |expiry: Value| {
        let mut params = json!({"name": "ci", "scopes": ["deploy"]});
        params.as_object_mut().unwrap().extend(expiry.as_object().unwrap().clone());
        service.call(Some(&ada), "svc_createDeployToken", params)
    };
    assert_eq!(days(&make(json!({})).ok()), Some(90));
    assert_eq!(make(json!({"expiresAt": null})).ok()["deployToken"]["expiresAt"], Value::Null);
    let passed = make(json!({"expiresAt": "2020-01-01T00:00:00.000Z"}));
    assert_eq!(passed.refusal(), (400, 142));

    let cli = |more: &[&str]| {
        let args = [&["token", "create", "--name", "ci", "--scope", "deploy"][..], more].concat();
        let settings = [
            ("SVC_API_URL", service.url.as_str()),
            ("SVC_APPLICATION_ID", &service.application_id),
            ("SVC_TOKEN", &ada.token),
        ];
        service.cli_json(&args, &settings)
    };
    assert_eq!(days(&cli(&[])), Some(90));
    assert_eq!(days(&cli(&["--expires", "7d"])), Some(7));
    assert_eq!(days(&cli(&["--expires", "never"])), None);
}

#[test]
fn a_job_with_a_token_deploys_a_folder() {
    let service = Service::start();
    let ada = service.register("ada");
    let (project, app) = service.project_with_app(&ada, None);
    let instance = json!({"projectId": project, "appId": app, "name": "Backend"});
    let instance = service.call(Some(&ada), "svc_createBackendInstance", instance).ok();
    let params = json!({"name": "deploys", "scopes": ["deploy", "instance:read"], "appId": app});
    let token = service.with_token(&ada, params);
    let folder = service.home.join("backend");
    std::fs::create_dir_all(folder.join("cloud")).unwrap();
    std::fs::write(folder.join("cloud/main.js"), "Parse.Cloud.define('a', () => 1);").unwrap();
    let settings = [
        ("SVC_API_URL", service.url.as_str()),
        ("SVC_TOKEN", &token.token),
        ("SVC_APP_ID", app.as_str().unwrap()),
    ];
    let made = service.cli_json(&["deploy", folder.to_str().unwrap(), "--detach"], &settings);
    let read = json!({"deploymentId": made["id"]});
    assert_eq!(service.call(Some(&token), "getDeployment", read).ok()["appId"], app);
    let details = service.call(Some(&token), "svc_getInstanceDetails", json!({"appId": app})).ok();
    assert_eq!(details["id"], instance["id"]);
    // What belongs to no app is out of reach of a token that is bound to one.
    let listed =
        service.call(Some(&token), "svc_getBackendInstances", json!({"projectId": project}));
    assert_eq!(listed.refusal(), (404, 101));

    let known = service.cli_json(&["whoami"], &settings);
    assert_eq!(
        (&known["email"], &known["deployToken"]["name"]),
        (&json!(ada.email), &json!("deploys"))
    );
    let said = service.cli_with(&["whoami"], &settings, "").stdout;
    let said = String::from_utf8(said).unwrap();
    assert!(
        said.contains("deploy,instance:read") && said.contains(app.as_str().unwrap()),
        "{said}"
    );
}

#[test]
fn a_hundred_tokens_of_a_person_and_of_an_app_can_be_used() {
    let service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let make = |app: &Value| {
        let params = json!({"name": "ci", "scopes": ["deploy"], "appId": app});
        service.call(Some(&ada), "svc_createDeployToken", params)
    };
    for (app, whose) in [(&Value::Null, "you have"), (&app, "this app has")] {
        for _ in 0..90 {
            make(app).ok();
        }
        let answers = together(16, |_| make(app));
        let made: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(made.len(), 10, "{answers:?}");
        let refused = answers.iter().find(|answer| answer.status != 200).unwrap();
        assert_eq!(refused.refusal(), (409, 119));
        let why = refused.body["error"].as_str().unwrap();
        assert!(why.contains(&format!("{whose} 100 deploy tokens")), "{why}");
        let one = json!({"tokenId": made[0].body["result"]["deployToken"]["id"]});
        service.call(Some(&ada), "svc_revokeDeployToken", one).ok();
        assert_eq!((make(app).status, make(app).status), (200, 409));
    }
    // A new password ends those that were made before, and they take no room.
    let change = json!({
        "currentPassword": "correct horse", "newPassword": "horse 1 horse", "revokeTokens": true,
    });
    service.call(Some(&ada), "changePassword", change).ok();
    let ada = service.sign_in(&ada, "horse 1 horse");
    for app in [&Value::Null, &app] {
        let params = json!({"name": "ci", "scopes": ["deploy"], "appId": app});
        service.call(Some(&ada), "svc_createDeployToken", params).ok();
    }
}
