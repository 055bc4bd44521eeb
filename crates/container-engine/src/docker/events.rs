//! Events of containers.

use super::{
    daemon::{Daemon, LOOK},
    errors::DaemonFailure,
    objects,
};
use crate::{EngineError, Event, Happening, Health, Labels};
use bollard::{
    models::{EventActor, EventMessage},
    query_parameters::EventsOptionsBuilder,
};
use contract::Timestamp;
use futures_core::stream::BoxStream;
use futures_util::{StreamExt, future, stream};

/// The events that change a container's state.
const ACTIONS: &[&str] = &["start", "die", "destroy", "health_status"];

/// Attributes that the daemon adds to a container's labels in an event.
const NO_LABELS: &[&str] = &["name", "image", "exitCode", "signal", "execDuration"];

pub(super) async fn events(
    daemon: &Daemon,
    labels: &Labels,
    since: Timestamp,
) -> Result<BoxStream<'static, Result<Event, EngineError>>, EngineError> {
    let mut filters = objects::filters(labels);
    filters.insert("type", vec!["container".to_owned()]);
    filters.insert("event", ACTIONS.iter().map(|&action| action.to_owned()).collect());
    let seconds = since.as_seconds();
    let millis = since.as_millis().rem_euclid(1000);
    let since = format!("{seconds}.{millis:03}000000");
    let options = EventsOptionsBuilder::default().since(&since).filters(&filters).build();

    // The stream sends its request on first use; this reports an unreachable daemon at once.
    let client = daemon.client().await.map_err(|failure| failure.about("events"))?;
    daemon
        .ask(LOOK, |client| async move { client.ping().await })
        .await
        .map_err(|failure| failure.about("events"))?;
    let daemon = daemon.clone();
    let events = client.events(Some(options)).map(move |event| match event {
        Ok(message) => Ok(event_of(message)),
        Err(error) => {
            let failure = DaemonFailure::from(error);
            daemon.heed(&failure);
            Err(failure.about("events"))
        }
    });
    let end = stream::once(future::ready(Err(EngineError::Unreachable(
        "the daemon ended the stream of events".to_owned(),
    ))));
    let mut has_failed = false;
    let events = events.chain(end).take_while(move |event| {
        // Nothing follows an error.
        future::ready(!std::mem::replace(&mut has_failed, event.is_err()))
    });
    Ok(events.filter_map(|event| future::ready(event.transpose())).boxed())
}

/// `None`: the event is about something else.
fn event_of(message: EventMessage) -> Option<Event> {
    let what = match message.action.as_deref()? {
        "start" => Happening::Started,
        "die" => Happening::Died,
        "destroy" => Happening::Removed,
        "health_status: healthy" => Happening::Health(Health::Healthy),
        "health_status: unhealthy" => Happening::Health(Health::Unhealthy),
        "health_status: starting" => Happening::Health(Health::Starting),
        _ => return None,
    };
    let EventActor { attributes, .. } = message.actor?;
    let mut labels: Labels = attributes?.into_iter().collect();
    let container = labels.get("name")?.clone();
    labels.retain(|name, _| !NO_LABELS.contains(&name.as_str()));
    let millis = match message.time_nano {
        Some(nanos) => nanos.div_euclid(1_000_000),
        None => message.time?.saturating_mul(1000),
    };
    Some(Event { at: Timestamp::from_millis(millis), container, labels, what })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn message(action: &str) -> EventMessage {
        let attributes = [("name", "x"), ("image", "i"), ("exitCode", "1"), ("svc.node", "n")];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
        EventMessage {
            action: Some(action.to_owned()),
            actor: Some(EventActor { attributes: Some(HashMap::from(attributes)), id: None }),
            time: Some(1),
            time_nano: Some(1_234_567_890),
            ..EventMessage::default()
        }
    }

    #[test]
    fn an_event_says_when_what_and_whose() {
        let event = event_of(message("die")).unwrap();
        assert_eq!(event.at, Timestamp::from_millis(1234));
        assert_eq!(event.container, "x");
        assert_eq!(event.what, Happening::Died);
        assert_eq!(event.labels, Labels::from([("svc.node".to_owned(), "n".to_owned())]));
        let sick = event_of(message("health_status: unhealthy")).unwrap();
        assert_eq!(sick.what, Happening::Health(Health::Unhealthy));
    }

    #[test]
    fn other_events_are_left_out() {
        assert_eq!(event_of(message("exec_create: sh")), None);
        assert_eq!(event_of(message("health_status: running: sh")), None);
    }
}
