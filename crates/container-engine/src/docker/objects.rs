//! Networks and volumes, and the inventory of all objects with a label.

use super::{
    Docker,
    body::map,
    daemon::{CHANGE, Daemon, LOOK},
    view,
};
use crate::{Container, EngineError, Inventory, LabelledObject, Labels};
use bollard::{
    models::{Network, NetworkCreateRequest, Volume, VolumeCreateRequest},
    query_parameters::{
        ListContainersOptionsBuilder, ListNetworksOptionsBuilder, ListVolumesOptionsBuilder,
        RemoveVolumeOptionsBuilder,
    },
};
use contract::Timestamp;
use std::collections::HashMap;

/// The option of a network with the name of its bridge.
const BRIDGE: &str = "com.docker.network.bridge.name";

pub(super) async fn ensure_network(
    docker: &Docker,
    name: &str,
    labels: &Labels,
) -> Result<(), EngineError> {
    let bridge = docker.walls.as_ref().and_then(|walls| walls.bridge(name, labels));
    make_network(docker, name, labels, bridge.as_deref()).await?;
    // Not before: nobody may take the rules of an installation without bridges for a forgotten one's.
    match &docker.walls {
        Some(walls) => walls.check(labels).await,
        None => Ok(()),
    }
}

/// Ensures a network. A new one gets this bridge, or one that the daemon names.
pub(super) async fn make_network(
    docker: &Docker,
    name: &str,
    labels: &Labels,
    bridge: Option<&str>,
) -> Result<(), EngineError> {
    // Asked twice at once, the daemon creates two networks of one name, and then no container can
    // join either.
    let _one_at_a_time = docker.networks.lock().await;
    let daemon = &docker.daemon;
    let mut found = networks_named(daemon, name).await?;
    // Two exist if the daemon carried out a request that was given up. The older one stays.
    found.sort_by(|a, b| (&a.created, &a.id).cmp(&(&b.created, &b.id)));
    let mut found = found.into_iter();
    let Some(network) = found.next() else {
        let request = NetworkCreateRequest {
            name: name.to_owned(),
            driver: Some("bridge".to_owned()),
            labels: Some(map(labels)),
            options: bridge.map(|bridge| HashMap::from([(BRIDGE.to_owned(), bridge.to_owned())])),
            ..NetworkCreateRequest::default()
        };
        let answer = daemon
            .ask(CHANGE, |client| async move { client.create_network(request).await.map(drop) })
            .await;
        // A lack of addresses comes as a 404, or from a later daemon as a 400.
        return answer.map_err(|failure| match failure.says("address pool") {
            true => EngineError::Refused(format!(
                "there is no room for the network {name}: the engine has no more addresses for networks"
            )),
            false => failure.about(format_args!("what the network {name} needs")),
        });
    };
    if !carries(network.labels.as_ref(), labels) {
        return Err(EngineError::Conflict(format!("the network {name} is not ours")));
    }
    for double in found.filter_map(|double| double.id) {
        remove_network(daemon, &double).await?;
    }
    Ok(())
}

/// The networks with these labels, and their bridges.
pub(super) async fn bridges(
    daemon: &Daemon,
    labels: &Labels,
) -> Result<Vec<(String, String)>, EngineError> {
    let named = networks(daemon, labels).await?.into_iter().filter_map(|network| {
        let named = network.options.unwrap_or_default().remove(BRIDGE);
        // What the daemon calls a bridge that nobody named.
        let bridge = named.or_else(|| Some(format!("br-{}", network.id?.get(..12)?)))?;
        Some((network.name?, bridge))
    });
    Ok(named.collect())
}

/// The address of the machine on a network.
pub(super) async fn gateway(daemon: &Daemon, name: &str) -> Result<String, EngineError> {
    let found = daemon
        .ask(LOOK, |client| async move { client.inspect_network(name, None).await })
        .await
        .map_err(|failure| failure.about(format_args!("network {name}")))?;
    let ranges = found.ipam.and_then(|ipam| ipam.config).unwrap_or_default();
    let gateway = ranges.into_iter().find_map(|range| range.gateway);
    // An engine with IPv6 can add the bits that count.
    let address = gateway.as_deref().and_then(|gateway| gateway.split('/').next());
    let address = address.filter(|address| address.parse::<std::net::Ipv4Addr>().is_ok());
    address
        .map(str::to_owned)
        .ok_or_else(|| EngineError::Refused(format!("the network {name} has no gateway")))
}

async fn networks(daemon: &Daemon, labels: &Labels) -> Result<Vec<Network>, EngineError> {
    let filters = filters(labels);
    let options = ListNetworksOptionsBuilder::default().filters(&filters).build();
    let found =
        daemon.ask(LOOK, |client| async move { client.list_networks(Some(options)).await }).await;
    found.map_err(|failure| failure.about("list of networks"))
}

/// The daemon's own filter matches parts of names.
async fn networks_named(daemon: &Daemon, name: &str) -> Result<Vec<Network>, EngineError> {
    let filters = HashMap::from([("name", vec![name])]);
    let options = ListNetworksOptionsBuilder::default().filters(&filters).build();
    let mut found = daemon
        .ask(LOOK, |client| async move { client.list_networks(Some(options)).await })
        .await
        .map_err(|failure| failure.about("list of networks"))?;
    found.retain(|network| network.name.as_deref() == Some(name));
    Ok(found)
}

pub(super) async fn remove_network(daemon: &Daemon, name: &str) -> Result<(), EngineError> {
    let answer =
        daemon.ask(CHANGE, |client| async move { client.remove_network(name).await }).await;
    match answer {
        Err(failure) if !failure.is(404) => Err(failure.about(format_args!("network {name}"))),
        _ => Ok(()),
    }
}

pub(super) async fn ensure_volume(
    daemon: &Daemon,
    name: &str,
    labels: &Labels,
) -> Result<(), EngineError> {
    let request = VolumeCreateRequest {
        name: Some(name.to_owned()),
        labels: Some(map(labels)),
        ..VolumeCreateRequest::default()
    };
    // An existing volume is answered as if it had been created, with its own labels.
    let volume: Volume = daemon
        .ask(CHANGE, |client| async move { client.create_volume(request).await })
        .await
        .map_err(|failure| failure.about(format_args!("volume {name}")))?;
    if carries(Some(&volume.labels), labels) {
        Ok(())
    } else {
        Err(EngineError::Conflict(format!("the volume {name} is not ours")))
    }
}

pub(super) async fn remove_volume(daemon: &Daemon, name: &str) -> Result<(), EngineError> {
    let options = RemoveVolumeOptionsBuilder::default().force(false).build();
    let answer = daemon
        .ask(CHANGE, |client| async move { client.remove_volume(name, Some(options)).await })
        .await;
    match answer {
        Err(failure) if !failure.is(404) => Err(failure.about(format_args!("volume {name}"))),
        _ => Ok(()),
    }
}

pub(super) async fn inventory(daemon: &Daemon, labels: &Labels) -> Result<Inventory, EngineError> {
    let at = now(daemon).await?;
    let containers = containers(daemon, labels).await?;
    let networks = networks(daemon, labels).await?;
    let volumes = volumes(daemon, labels).await?;
    Ok(Inventory {
        at,
        containers,
        networks: networks
            .into_iter()
            .map(|network| LabelledObject {
                name: network.name.unwrap_or_default(),
                labels: view::labels(network.labels),
            })
            .collect(),
        volumes: volumes
            .into_iter()
            .map(|volume| LabelledObject {
                name: volume.name,
                labels: view::labels(Some(volume.labels)),
            })
            .collect(),
    })
}

/// The containers with these labels, running or not.
pub(super) async fn containers(
    daemon: &Daemon,
    labels: &Labels,
) -> Result<Vec<Container>, EngineError> {
    let filters = filters(labels);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let found = daemon
        .ask(LOOK, |client| async move { client.list_containers(Some(options)).await })
        .await
        .map_err(|failure| failure.about("list of containers"))?;
    Ok(found.into_iter().map(|found| view::summary(found, daemon.publishes_at)).collect())
}

/// The volumes with these labels.
pub(super) async fn volumes(daemon: &Daemon, labels: &Labels) -> Result<Vec<Volume>, EngineError> {
    let filters = filters(labels);
    let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
    let found = daemon
        .ask(LOOK, |client| async move { client.list_volumes(Some(options)).await })
        .await
        .map_err(|failure| failure.about("list of volumes"))?;
    Ok(found.volumes.unwrap_or_default())
}

/// The daemon's clock, which its events use too.
pub(super) async fn now(daemon: &Daemon) -> Result<Timestamp, EngineError> {
    let info = daemon
        .ask(LOOK, |client| async move { client.info().await })
        .await
        .map_err(|failure| failure.about("state of the daemon"))?;
    let now = info.system_time.as_deref().and_then(view::moment);
    now.ok_or_else(|| EngineError::Unreachable("it does not say what time it is".to_owned()))
}

/// A filter for objects that carry all of these labels.
pub(super) fn filters(labels: &Labels) -> HashMap<&'static str, Vec<String>> {
    let labels = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    HashMap::from([("label", labels)])
}

pub(super) fn carries(found: Option<&HashMap<String, String>>, labels: &Labels) -> bool {
    labels.iter().all(|(name, value)| found.and_then(|found| found.get(name)) == Some(value))
}
