//! Events of containers.

use super::{
    bench::{Bench, command},
    programs::IS_SICK,
};
use container_engine::{Event, Happening, Health, HealthCommand, Labels};
use futures_util::{StreamExt, stream::BoxStream};
use std::time::Duration;

type Events = BoxStream<'static, Result<Event, container_engine::EngineError>>;

async fn next(events: &mut Events) -> Event {
    let event = tokio::time::timeout(Duration::from_secs(20), events.next());
    event.await.expect("an event in time").expect("no end").expect("no error")
}

pub async fn nothing_is_missed_between_an_inventory_and_the_events(bench: &dyn Bench) {
    let (engine, spec) = (bench.engine(), bench.spec("a"));
    bench.make(&spec).await;
    let mut other = bench.spec("b");
    other.labels = Labels::from([("svc.other".to_owned(), bench.run().to_owned())]);
    bench.add_foreign_container(&bench.name("foreign")).await;
    let inventory = engine.inventory(&spec.labels).await.unwrap();

    engine.start(&spec.name).await.unwrap();
    bench.kill(&spec.name).await;
    bench.see_until(&spec.name, |container| !container.is_running()).await;
    let mut events = engine.events(&spec.labels, inventory.at).await.unwrap();
    for what in [Happening::Started, Happening::Died] {
        let event = next(&mut events).await;
        assert_eq!((&event.container, event.what), (&spec.name, what));
        assert!(event.at >= inventory.at);
        assert_eq!(event.labels.get("svc.test").map(String::as_str), Some(bench.run()));
        assert!(!event.labels.contains_key("image"), "{event:?}");
    }
    // Live events follow the earlier ones.
    bench.kill(&bench.name("foreign")).await;
    engine.start(&spec.name).await.unwrap();
    assert_eq!(next(&mut events).await.what, Happening::Started);
    engine.remove_container(&spec.name).await.unwrap();
    assert_eq!(next(&mut events).await.what, Happening::Died);
    let last = next(&mut events).await;
    assert_eq!((&last.container, last.what), (&spec.name, Happening::Removed));
}

pub async fn health_is_told(bench: &dyn Bench) {
    let mut spec = bench.spec("a");
    spec.health = Some(HealthCommand {
        command: command(IS_SICK),
        interval: Duration::from_millis(500),
        timeout: Duration::from_secs(5),
        retries: 1,
        start_period: Duration::ZERO,
    });
    let since = bench.engine().inventory(&spec.labels).await.unwrap().at;
    bench.start(&spec).await;
    let mut events = bench.engine().events(&spec.labels, since).await.unwrap();
    assert_eq!(next(&mut events).await.what, Happening::Started);
    assert_eq!(next(&mut events).await.what, Happening::Health(Health::Unhealthy));
}
