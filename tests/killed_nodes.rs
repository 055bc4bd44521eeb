//! One of three nodes is killed in the middle of what takes long. It ends as it would have.

use crate::{
    instances::{made, until},
    stores::is_published_once,
    support::{
        checkouts::World,
        engine::{engine, template},
        load::{together, under_load_of_patient},
        service::{LONGEST, Person, Service, eventually},
        stores::Stores,
    },
};
use serde_json::{Value, json};
use std::{
    thread::sleep,
    time::{Duration, Instant},
};

const NODES: usize = 3;

/// Kills one node after the other. Each is away until the next one is killed.
#[derive(Default)]
struct Turns {
    kills: usize,
}

impl Turns {
    fn kill_next(&mut self, service: &mut Service) {
        if self.kills > 0 {
            service.boot_node((self.kills - 1) % NODES);
        }
        service.kill_node(self.kills % NODES);
        self.kills += 1;
        // The balancer looks five times a second. Until then, a call may fail that nobody repeats here.
        sleep(Duration::from_millis(500));
    }
}

/// The reply of a call, which is repeated until it is answered, as clients do. Not all of its failures say that nothing
/// was done, so a change needs a name.
fn repeated(
    service: &Service,
    who: Option<&Person>,
    function: &str,
    params: &Value,
    once: Option<&str>,
) -> Value {
    let begun = Instant::now();
    loop {
        match service.try_call(who, function, params.clone(), once) {
            Ok(answer) if answer.status == 200 => return answer.ok(),
            Ok(answer) => assert!(answer.status >= 500 || answer.status == 424, "{answer:?}"),
            Err(_) => {}
        }
        assert!(begun.elapsed() < LONGEST, "{function} is never answered");
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_release_of_two_platforms_is_published_once_while_nodes_are_killed() {
    let Some(stores) = Stores::on_nodes("a release while nodes are killed", NODES) else { return };
    let mut turns = Turns::default();
    is_published_once(stores, |service| turns.kill_next(service));
}

#[test]
fn payments_are_settled_once_while_nodes_are_killed() {
    let Some(mut world) = World::on_nodes("payments while nodes are killed", NODES) else { return };
    let order = world.order();
    let opened = |world: &World, once: &str| {
        let answer = repeated(&world.service, None, "svc_checkout_create", &order, Some(once));
        answer["reference"].clone()
    };
    for round in 0..4 {
        let node = round % NODES;
        // The last caller kills a node.
        let references = together(9, |caller| {
            if caller == 8 {
                sleep(Duration::from_millis(150 * round as u64));
                world.service.signal_node(node, "KILL");
                return None;
            }
            let reference = opened(&world, &format!("cart-{round}-{caller}"));
            world.tell(json!({"do": "pay", "reference": reference}));
            Some(reference)
        });
        world.service.kill_node(node);
        for reference in references.into_iter().flatten() {
            let asked = json!({"reference": reference});
            let call = |who, function| repeated(&world.service, who, function, &asked, None);
            eventually("it is paid", || call(None, "svc_checkout_verify")["status"] == "paid");
            eventually("it is settled", || {
                call(Some(&world.ada), "svc_getCheckout")["state"] == "settled"
            });
        }
        world.service.boot_node(node);
    }
    world.check();
}

#[test]
fn deployments_under_load_go_on_while_nodes_are_killed() {
    let test = "deployments_under_load_go_on_while_nodes_are_killed";
    let Some(engine) = engine(test) else { return };
    let Some(mut service) = engine.service_on_nodes(test, NODES, &[]) else { return };
    let server = json!({"role": "server", "image": "web-server", "port": 8080,
        "healthCheck": {"http": "/health"}});
    let template = template(&service, engine, json!([server]));
    let admin = service.administrator();
    let known = service.call(None, "getTemplate", json!({"templateId": template})).ok();
    let mut server = known["versions"][0]["services"][0].clone();
    server["env"] = json!({"WORDS": "the second"});
    let second = json!({"templateId": template, "version": "2.0.0", "services": [server]});
    service.call(Some(&admin), "addTemplateDockerVersion", second).ok();
    let (ada, _, made) =
        made(&service, "svc_createBackendInstance", json!({"templateId": template}));
    let running = until(&service, &ada, &made["id"], &["running"]);
    let url = running["url"].as_str().unwrap();

    for (node, version) in ["2.0.0", "1.0.0", "2.0.0"].into_iter().enumerate() {
        // A request that the killed node had is sent again once.
        under_load_of_patient(
            1,
            |client| client.get(url),
            || {
                let params =
                    json!({"appId": made["appId"], "source": {"templateVersion": version}});
                let begun = service.call(Some(&ada), "triggerDeployment", params).ok();
                sleep(Duration::from_millis(400 * node as u64));
                service.signal_node(node, "KILL");
                let asked = json!({"deploymentId": begun["id"]});
                eventually("it is live", || {
                    let found = repeated(&service, Some(&ada), "getDeployment", &asked, None);
                    assert_ne!(found["state"], "failed", "{found}");
                    found["state"] == "live"
                });
            },
        );
        service.kill_node(node);
        let logs = json!({"appId": made["appId"], "tail": 1});
        let logs = service.call(Some(&ada), "svc_getInstanceLogs", logs).ok();
        let says_second = logs["lines"][0]["text"].as_str().unwrap().contains("the second");
        assert_eq!(says_second, version == "2.0.0", "{logs}");
        service.boot_node(node);
    }
    let gone = json!({"instanceId": made["id"], "deleteData": true});
    service.call(Some(&ada), "svc_deleteBackendInstance", gone).ok();
    service.has_objects(Some(made["id"].as_str().unwrap()), 0);
}
