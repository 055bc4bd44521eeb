//! A backend on the real engine, from its creation to the restore of a backup.

use super::{register, start};
use crate::{
    backups::psql,
    instances::until,
    support::{
        engine::{docker, engine},
        service::eventually,
    },
};
use serde_json::{Value, json};

/// What the name of an instance may be.
const NAME: &str = "Backend <script>alert(1)</script>";

#[test]
fn a_backend_is_made_used_deployed_and_restored() {
    let test = "a_backend_is_made_used_deployed_and_restored";
    let Some(engine) = engine(test) else { return };
    let Some((browser, judge)) = start(test) else { return };
    let service = engine.service(&[]);
    let ada = register(&browser, &service, "ada@example.com");
    browser.click("link", "Projects");
    browser.fill("textbox", "Name", "Shop");
    browser.click("button", "Make the project");
    browser.click("link", "Instances");
    browser.says("Nothing runs in this project yet.");
    judge.page(&browser, "instances-none");

    // What is refused stays in the form.
    browser.fill("textbox", "Name", NAME);
    browser.fill("textbox", "Environment", "SLACK_URL");
    browser.click("button", "Make the instance");
    browser.says("must have lines such as NAME=value");
    assert_eq!(browser.value("textbox", "Name"), NAME);
    browser.fill("textbox", "Environment", "SLACK_URL=s3cret=");
    browser.click("button", "Make the instance");
    browser.find("heading", NAME);
    let at = browser.url();
    let id = Value::from(at.rsplit('/').next().unwrap());
    // The state on the page follows that of the containers.
    let instance = until(&service, &ada, &id, &["running", "failed"]);
    browser.says_in_time("Running");
    browser.says("Healthy");
    judge.page(&browser, "instance");
    browser.click("DisclosureTriangle", "Stop");
    browser.says("Nobody reaches it until it is started again.");
    browser.click("button", "Stop");
    browser.says("Stopped");
    browser.click("button", "Start");
    until(&service, &ada, &id, &["running"]);
    browser.says("Healthy");
    browser.fill("textbox", "Memory of the server in megabytes", "lots");
    browser.click("button", "Save");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Memory of the server in megabytes"), "lots");

    // A masked value stays as it is, and a new one comes beside it.
    browser.click("link", "Environment");
    let env = browser.value("textbox", "Variables");
    assert!(env.starts_with("SLACK_URL=•"), "{env}");
    judge.page(&browser, "instance-environment");
    browser.fill("textbox", "Variables", &format!("{env}GREETING=a=b"));
    browser.click("button", "Save, and replace the container");
    browser.says("when it is healthy");
    eventually("a container has both variables", || {
        let label = format!("label=svc.instance={}", id.as_str().unwrap());
        let all = docker(&["ps", "--quiet", "--filter", &label]);
        all.lines().any(|container| {
            let env = docker(&["inspect", "--format", "{{json .Config.Env}}", container]);
            env.contains("\"GREETING=a=b\"") && env.contains("\"SLACK_URL=s3cret=\"")
        })
    });

    browser.click("link", "Logs");
    browser.choose("Service", "Server");
    browser.click("button", "Show");
    browser.says("Server:");
    judge.page(&browser, "instance-logs");
    browser.click("link", "Cloud functions");
    browser.choose("Cloud function", "hello");
    browser.fill("textbox", "Parameters", r#"{"name": "#);
    browser.click("button", "Run it");
    browser.says("is not JSON");
    assert_eq!(browser.value("textbox", "Parameters"), r#"{"name": "#);
    browser.fill("textbox", "Parameters", r#"{"name": "<b>Ada</b>"}"#);
    browser.click("button", "Run it");
    browser.says("Hello, <b>Ada</b>");
    judge.page(&browser, "instance-functions");
    browser.click("link", "Database");
    browser.says("It works");
    judge.page(&browser, "instance-database");

    // A backup, restored only with the name of the instance.
    psql(&instance, "parse", "create table kept (n int); insert into kept values (7)");
    browser.click("link", "Backups");
    browser.says("No backups yet.");
    browser.click("checkbox", "Verify it when it is ready");
    browser.click("button", "Back up now");
    browser.says("The backup is being written.");
    browser.comes_to_say("Succeeded");
    judge.page(&browser, "instance-backups");
    psql(&instance, "parse", "delete from kept");
    browser.fill("textbox", "Name of the instance", "Backend");
    browser.click("button", "Restore this backup");
    browser.says("is not the name of the instance");
    assert_eq!(psql(&instance, "parse", "select count(*) from kept"), "0");
    browser.fill("textbox", "Name of the instance", NAME);
    browser.click("button", "Restore this backup");
    browser.says("The backup is being restored.");
    eventually("the row is back", || {
        let restored =
            service.call(Some(&ada), "svc_getBackups", json!({"appId": instance["appId"]}));
        restored.ok()["items"][0]["restore"]["state"] == "succeeded"
    });
    until(&service, &ada, &id, &["running"]);
    assert_eq!(psql(&instance, "parse", "select n from kept"), "7");
    browser.fill("textbox", "Times in UTC", "every day");
    browser.click("button", "Schedule backups");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Times in UTC"), "every day");
    browser.fill("textbox", "Times in UTC", "0 4 * * *");
    browser.click("button", "Schedule backups");
    browser.says("7 are kept. Each is verified.");
    browser.click("DisclosureTriangle", "End the schedule");
    browser.click("button", "End the schedule");
    browser.find("textbox", "Times in UTC");

    // A backup begins another instance, and is deleted.
    let backups = service.call(Some(&ada), "svc_getBackups", json!({"appId": instance["appId"]}));
    let backup = backups.ok()["items"][0]["id"].as_str().unwrap().to_owned();
    browser.click("link", &format!("Make an instance of it {backup}"));
    assert_eq!(browser.value("textbox", "Backup to begin with"), backup);
    browser.open(&format!("{at}/backups"));
    browser.click("DisclosureTriangle", &format!("Delete {backup}"));
    browser.click("button", &format!("Delete {backup}"));
    browser.says("The backup is deleted.");

    // A domain of the person, which nothing proves yet.
    browser.click("link", "Domains");
    browser.says("No domain of yours leads to this app yet.");
    judge.page(&browser, "instance-domains-none");
    browser.fill("textbox", "Host name", "https://shop.example.com");
    browser.click("button", "Add a domain");
    browser.says("must be a host name such as shop.example.com");
    browser.fill("textbox", "Host name", "Shop.Example.com");
    browser.click("button", "Add a domain");
    browser.says("Write the record of shop.example.com");
    browser.says("_svc-domain.shop.example.com");
    judge.page(&browser, "instance-domains");
    browser.click("DisclosureTriangle", "Remove shop.example.com");
    browser.click("button", "Remove shop.example.com");
    browser.says("The domain is removed.");

    // A page of the instance can neither read pages of the person nor send their forms, even if it
    // is at the same host, to which the browser sends the same cookies.
    let tenant = instance["url"].as_str().unwrap().replace("127.0.0.1", "localhost");
    browser.open(&tenant);
    let attack = |request: &str| {
        let done = "const done = arguments[arguments.length - 1];";
        let script = format!(
            "{done} fetch('{}{request}).then((answer) => answer.text()).then(done, () => done('refused'))",
            service.dashboard()
        );
        browser.run_async(&script)
    };
    assert_eq!(attack("/account', {credentials: 'include'}"), "refused");
    let form =
        "mode: 'no-cors', credentials: 'include', body: new URLSearchParams({name: 'Stolen'})";
    attack(&format!("/projects', {{method: 'POST', {form}}}"));
    let projects = service.call(Some(&ada), "svc_getProjects", json!({})).ok();
    assert_eq!(projects["items"].as_array().unwrap().len(), 1, "{projects}");
    browser.open(&format!("{at}/backups"));

    // Another version, and back.
    let admin = service.administrator();
    let image = service.call(None, "getDockerImage", json!({"name": "parse-server"})).ok();
    let version = json!({"imageId": image["id"], "version": "2"});
    service.call(Some(&admin), "addDockerImageVersion", version).ok();
    browser.click("link", "Deployments");
    browser.says("No deployments yet.");
    judge.page(&browser, "deployments-none");
    browser.click("radio", "A registered image");
    browser.choose("Image version", "parse-server 2");
    browser.click("button", "Deploy");
    browser.find("heading", "Deployment of the backend");
    browser.says_in_time("Live");
    browser.open(&browser.url());
    judge.page(&browser, "deployment");
    browser.click("link", "Deployments");
    browser.says("image version 2");
    judge.page(&browser, "deployments");
    browser.click("checkbox", "Replace the version that serves now");
    browser.click("button", "Roll back");
    browser.find("heading", "Deployment of the backend");
    browser.says_in_time("Live");

    // The charts have samples of the first minutes.
    browser.open(&at);
    browser.comes_to_say("CPU");
    judge.page(&browser, "instance-charts");

    // Deleted by its name, and brought back.
    browser.fill("textbox", "Name of the instance", NAME);
    browser.click("button", "Delete the instance");
    browser.says("Its data is kept for seven days.");
    browser.comes_to_say("Deleted, with data that is still kept");
    judge.page(&browser, "instances-deleted");
    eventually("its containers are gone", || {
        let params = json!({"projectId": instance["projectId"], "deleted": true});
        let all = service.call(Some(&ada), "svc_getBackendInstances", params).ok();
        all["items"][0]["state"] == "deleted"
    });
    browser.click("button", &format!("Bring back {NAME}"));
    browser.find("heading", NAME);
    until(&service, &ada, &id, &["running"]);
    assert_eq!(psql(&instance, "parse", "select n from kept"), "7");
}
