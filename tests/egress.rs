//! What instances reach, from inside of their containers.

use crate::{
    instances::{backend, made, until},
    support::{
        engine::{address_for_containers, docker, engine},
        service::{Service, eventually},
    },
};
use serde_json::{Value, json};
use std::net::TcpListener;

/// Whether a program in the container connects to this address. If not, the rules refused it, or the
/// engine dropped it, as Docker does between networks since version 28.
fn reaches(container: &str, address: &str) -> bool {
    let (host, port) = address.rsplit_once(':').unwrap();
    let connect =
        format!("timeout 5 bash -c 'exec 3<>/dev/tcp/{host}/{port}' 2>&1 && echo yes || echo $?");
    let said = docker(&["exec", container, "bash", "-c", &connect]);
    let (reached, dropped) = (said.ends_with("yes"), said == "124");
    assert!(reached || dropped || said.contains("No route to host"), "{address}: {said}");
    reached
}

/// The name of the container of a service of an instance.
pub fn container(instance: &Value, role: &str) -> String {
    let id = instance["id"].as_str().unwrap().trim_start_matches("ins_").to_lowercase();
    docker(&["ps", "--filter", &format!("name=^svc-{id}-{role}-"), "--format", "{{.Names}}"])
}

fn of_network(container: &str, what: &str) -> String {
    let format = format!("{{{{range .NetworkSettings.Networks}}}}{{{{.{what}}}}}{{{{end}}}}");
    docker(&["inspect", container, "--format", &format])
}

/// The containers that keep the walls of this installation.
fn keepers(service: &Service) -> String {
    let filter = format!("label=svc.walls={}", service.application_id);
    docker(&["ps", "--filter", &filter, "--format", "{{.Names}}"])
}

fn egress(service: &Service) -> Value {
    let ready = service.http.get(format!("{}/readyz", service.url)).send().unwrap();
    ready.json::<Value>().unwrap()["checks"]["egress"].take()
}

#[test]
fn an_instance_reaches_its_own_services_and_nothing_else_of_the_inside() {
    let test = "an_instance_reaches_its_own_services_and_nothing_else_of_the_inside";
    let Some(engine) = engine(test) else { return };
    let listen = || TcpListener::bind("0.0.0.0:0").unwrap();
    let (named, exception, secret) = (listen(), listen(), listen());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let machine = address_for_containers();
    let named_at = format!("{machine}:{}", port(&named));
    let mut service = engine.service_for_containers(&[("SVC_INSTANCE_PRIVATE_HOSTS", &named_at)]);
    let (ada, project, one) = backend(&service);
    let wanted = json!({"projectId": project["id"], "name": "Other"});
    let two = service.call(Some(&ada), "svc_createBackendInstance", wanted).ok();
    let two = until(&service, &ada, &two["id"], &["running", "failed"]);
    let inside = container(&one, "server");
    let own = format!("{machine}:{}", service.url.rsplit(':').next().unwrap());
    let (database, other) = (container(&one, "sqldb"), container(&two, "server"));
    let gateway = of_network(&inside, "Gateway");
    let closed = || {
        let to_machine = [machine.to_string(), gateway.clone(), "172.17.0.1".to_owned()];
        let mut inner: Vec<String> =
            to_machine.iter().map(|address| format!("{address}:{}", port(&secret))).collect();
        inner.push(format!("{}:1337", of_network(&other, "IPAddress")));
        inner.push("169.254.169.254:80".to_owned());
        inner.into_iter().find(|address| reaches(&inside, address))
    };
    assert_eq!(closed(), None);
    assert!(reaches(&inside, &format!("{}:5432", of_network(&database, "IPAddress"))));
    assert!(reaches(&inside, &named_at), "what an operator names");
    assert!(reaches(&inside, &own), "the address of the service, which is everybody's");
    assert_eq!(egress(&service)["ok"], true);

    // Another program throws the rules away, and somebody removes the container that keeps them.
    let keeper = keepers(&service);
    let tables = docker(&["exec", &keeper, "nft", "list", "tables"]);
    let bridge = "{{index .Options \"com.docker.network.bridge.name\"}}";
    let network = docker(&[
        "network",
        "ls",
        "-q",
        "--filter",
        &format!("label=svc.instance={}", one["id"].as_str().unwrap()),
    ]);
    let bridge = docker(&["network", "inspect", &network, "--format", bridge]);
    let table = format!("svc_{}", &bridge[2..8]);
    assert!(tables.contains(&table), "{tables}");
    docker(&["exec", &keeper, "nft", "delete", "table", "inet", &table]);
    eventually("the rules are back", || closed().is_none());
    docker(&["rm", "-f", &keeper]);
    eventually("there is another keeper", || {
        let now = keepers(&service);
        !now.is_empty() && now != keeper
    });
    assert_eq!(closed(), None);

    // An operator makes an exception for the organization, and one for another.
    let to_exception = format!("{machine}:{}", port(&exception));
    assert!(!reaches(&inside, &to_exception));
    service.stop();
    let organization = project["organizationId"].as_str().unwrap();
    let other = "org_01JZZZZZZZZZZZZZZZZZZZZZZZ";
    let hosts = format!("{organization}={to_exception},{other}={machine}:{}", port(&secret));
    service.set("SVC_ORGANIZATION_PRIVATE_HOSTS", &hosts);
    service.boot();
    eventually("the exception is open", || reaches(&inside, &to_exception));
    assert_eq!(closed(), None);
}

#[test]
fn where_the_walls_cannot_be_raised_no_instance_starts() {
    let Some(engine) = engine("where_the_walls_cannot_be_raised_no_instance_starts") else {
        return;
    };
    let mut service = engine.service(&[("SVC_BUILDER_BASE_IMAGE", "127.0.0.1:1/nobody:1")]);
    let (ada, _, instance) = made(&service, "svc_createBackendInstance", json!({}));
    let seen = || {
        let params = json!({"instanceId": instance["id"]});
        service.call(Some(&ada), "svc_getBackendInstance", params).ok()
    };
    eventually("it waits for an operator", || {
        seen()["lastError"].as_str().is_some_and(|why| why.contains("waits for an operator"))
    });
    let check = egress(&service);
    assert_eq!(check["ok"], false);
    assert!(check["error"].as_str().unwrap().contains("the log says why"), "{check}");
    let admin = service.administrator();
    let overview = service.call(Some(&admin), "svc_admin_getOverview", json!({})).ok();
    let attention = overview["attention"].as_array().unwrap();
    assert!(attention.iter().any(|entry| entry["reason"] == "egressOpen"), "{overview}");
    assert!(service.log().contains("127.0.0.1:1/nobody:1"));
    let doctor = service.cli_with(&["doctor", "--json"], &[("SVC_API_URL", &service.url)], "");
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(said.contains("egress (what instances reach is not restricted"), "{said}");

    // The operator has rules of their own.
    service.stop();
    service.set("SVC_INSTANCE_EGRESS", "all");
    service.boot();
    let running = until(&service, &ada, &instance["id"], &["running", "failed"]);
    assert_eq!(running["state"], "running", "{running}");
    assert_eq!(egress(&service)["ok"], true);
    assert_eq!(keepers(&service), "");
}
