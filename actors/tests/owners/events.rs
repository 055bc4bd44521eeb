//! What instances and deployments tell webhooks: the outbox holds an event for each state that
//! matters, in order.

use super::{
    harness::{comes_to, run},
    instances::{create, until},
    scene,
};
use actors::{
    kinds::{
        events::webhooks::outbox::{OutboxIndex, Outgoing},
        hosting::{
            deployments::Deployments,
            instances::{Command, Instances},
        },
        people::{
            organizations::{self, Organizations},
            projects::Projects,
        },
        world::World,
    },
    runtime::resource::{Kept, Moment, Resource},
};
use contract::{
    DeploymentId, Id, OrganizationId, UserId, WebhookId,
    deployments::DeploymentState,
    instances::InstanceState as S,
    projects::{Project, ProjectState},
    webhooks::EventType as E,
};
use serde_json::Value;
use std::sync::Arc;
use store::Change;
use ulid::Ulid;

/// Makes the project of the instances, in an organization that hears of events.
async fn listen(world: &Arc<World>) {
    let (now, owner) = (world.ports.clock.now(), UserId::of(Ulid(12)));
    let organization_id = OrganizationId::of(Ulid(11));
    let acme = organizations::New { name: "Acme".parse().unwrap(), owner };
    world.to::<Organizations>(organization_id).create(acme).await.unwrap();
    let project = Project {
        id: scene::instance(now).project_id,
        organization_id,
        owner_id: Some(owner),
        name: "Shop".parse().unwrap(),
        description: None,
        member_ids: vec![],
        state: ProjectState::Active,
        created_at: now,
        updated_at: now,
    };
    let create = Change::new().create::<Projects>(&project.id.clone(), Kept::at_rest(project));
    world.store.commit(create).await.unwrap();
    world.webhooks.add(organization_id, WebhookId::of(Ulid(13)));
}

/// The events in the outbox, oldest first, with their records.
fn told(world: &World) -> Vec<(E, Value)> {
    let outbox = world.store.oldest::<Outgoing>(&OutboxIndex::All, None);
    let events = outbox.map(|found| {
        let (_, outgoing) = found.unwrap();
        let payload: Value = serde_json::from_str(&outgoing.payload).unwrap();
        assert_eq!(payload["type"], outgoing.event.name());
        (outgoing.event, payload["data"][outgoing.event.noun()].clone())
    });
    events.collect()
}

#[test]
fn an_instance_and_its_deployment_tell_what_they_do() {
    run(|world, _| async move {
        listen(&world).await;
        let id = create(&world).await;
        until(&world, id, S::Running, "at first").await;
        let deployment: DeploymentId = world.ports.random.id(world.ports.clock.now());
        let mut begun = scene::deploying(deployment, id, world.ports.clock.now());
        begun.deployment.app_id = world.store.get::<Instances>(&id).unwrap().unwrap().state.app_id;
        world.to::<Deployments>(deployment).create(begun).await.unwrap();
        comes_to::<Deployments>(&world, deployment, "it serves", |deployment| {
            let deployment = deployment.unwrap();
            deployment.deployment.state == DeploymentState::Live && !deployment.in_queue
        })
        .await;
        world.to::<Instances>(id).ask(Command::Stop).await.unwrap();
        until(&world, id, S::Stopped, "then").await;
        world.to::<Instances>(id).ask(Command::Delete { data: false }).await.unwrap();
        until(&world, id, S::Deleted, "at last").await;

        let told = told(&world);
        let kinds: Vec<_> = told.iter().map(|(kind, _)| *kind).collect();
        let expected = [
            E::InstanceRunning,
            E::DeploymentStarted,
            E::DeploymentLive,
            E::InstanceStopped,
            E::InstanceDeleted,
        ];
        assert_eq!(kinds, expected);
        let text = |kind: E, field: &str| {
            let (_, record) = told.iter().find(|(told, _)| *told == kind).unwrap();
            record[field].as_str().unwrap().to_owned()
        };
        assert_eq!(text(E::InstanceRunning, "state"), "running");
        assert_eq!(text(E::InstanceRunning, "id"), id.to_string());
        assert_eq!(text(E::DeploymentLive, "id"), deployment.to_string());
        let shown = serde_json::to_string(&told).unwrap();
        assert!(!shown.contains("\"secrets\"") && !shown.contains("parts"), "as members see it");
    });
}

#[test]
fn each_advisory_is_told_once() {
    run(|world, _| async move {
        listen(&world).await;
        let id = create(&world).await;
        until(&world, id, S::Running, "at first").await;
        let mut instance = world.store.get::<Instances>(&id).unwrap().unwrap().state.clone();
        let at = Moment { id, now: world.ports.clock.now() };
        for (concern, news) in
            [(&["a"][..], 1), (&["a"], 0), (&["a", "b"], 1), (&["b"], 0), (&[], 0), (&["b"], 1)]
        {
            let before = instance.clone();
            instance.advised = concern.iter().map(|id| (*id).to_owned()).collect();
            let told = Instances::events(&at, Some(&before), &instance, &world);
            assert_eq!(told.len(), news, "{concern:?}");
            assert!(told.iter().all(|event| event.kind == E::InstanceOutdated));
        }
    });
}
