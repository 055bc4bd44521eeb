//! Walls around networks: rules in the engine's machine for what containers reach.
//!
//! The bridges of walled networks have names that begin alike, so one table of [rules] is about all of
//! them, also about those that are made later. A [tethered](super::helpers::tether) container in the
//! machine's network, the keeper, sets the rules, and sets them again each time it is told: another
//! program may have removed them. The rules stay when this process ends.
//!
//! When a keeper begins, a container on a walled network tries to get out. The walls stand if it fails.

mod bodies;
mod rules;

use super::{
    Docker,
    helpers::{
        Helpers,
        tether::{self, Tethered},
    },
    objects,
};
use crate::{EngineError, Labels, Peers};
use bollard::models::ContainerCreateBody;
use data_encoding::BASE32_NOPAD;
use rules::{ELSEWHERE, Facts};
use sha2::{Digest, Sha256};
use std::{mem, net::IpAddr, time::Duration};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

/// Label: whose walls a container or a network is for.
const LABEL: &str = "svc.walls";
/// How long a network waits for the walls, which may have to be raised first.
const RAISED_WITHIN: Duration = Duration::from_secs(20);
/// After this time the name servers of containers are read again: a network may have given the machine others.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(600);
/// What the keeper says after each change.
const SET: &str = "set";
/// What the probe says if it gets nowhere.
const CLOSED: &str = "closed";

/// The walls of an installation.
pub(super) struct Walls {
    /// Networks with these labels are walled.
    labels: Labels,
    /// The networks of addresses that containers must not reach.
    closed: Vec<(IpAddr, u8)>,
    /// Made of the labels, and of what tells the engine from others. In the names of the bridges and of the table.
    tag: String,
    state: tokio::sync::Mutex<State>,
    /// Tells those that wait that the walls stand or cannot be raised.
    raised: Notify,
}

enum State {
    /// They do not stand, or somebody works on them.
    Unknown,
    Standing(Box<Standing>),
    /// They cannot be raised.
    Fallen(EngineError),
}

struct Standing {
    keeper: Tethered,
    resolvers: Vec<IpAddr>,
    /// When these were read.
    read_at: Instant,
    /// The networks from the time before the walls, with their bridges.
    before: Vec<(String, String)>,
    rules: String,
}

impl Docker {
    /// Puts walls around the networks with these labels. Containers on them do not reach the `closed`
    /// networks of addresses, which are given by an address and the bits that count. `of` tells the walls of
    /// several engines with the same labels apart: they may be on one machine.
    #[must_use]
    pub fn with_walls(
        mut self,
        labels: Labels,
        closed: Vec<(IpAddr, u8)>,
        of: Option<&String>,
    ) -> Docker {
        let texts = labels.iter().flat_map(|(name, value)| [name, value]).chain(of);
        let tag = short(texts, 6);
        let (state, raised) = (tokio::sync::Mutex::new(State::Unknown), Notify::new());
        self.walls = Some(Walls { labels, closed, tag, state, raised });
        self
    }
}

/// So many letters and digits that stand for these texts.
fn short<'a>(texts: impl IntoIterator<Item = &'a String>, length: usize) -> String {
    let hash = texts.into_iter().fold(Sha256::new(), |hash, text| {
        hash.chain_update(text.len().to_be_bytes()).chain_update(text)
    });
    let mut text = BASE32_NOPAD.encode(&hash.finalize()).to_ascii_lowercase();
    text.truncate(length);
    text
}

impl Walls {
    /// Whether a network with these labels is walled.
    fn are_around(&self, labels: &Labels) -> bool {
        self.labels.iter().all(|(name, value)| labels.get(name) == Some(value))
    }

    /// The bridge of a walled network: a name of an interface has 15 characters at most. `None`: a network
    /// with these labels is not walled.
    pub fn bridge(&self, network: &str, labels: &Labels) -> Option<String> {
        self.are_around(labels).then(|| self.bridge_of(network))
    }

    fn bridge_of(&self, network: &str) -> String {
        format!("{}{}", self.prefix(), short([&network.to_owned()], 7))
    }

    fn prefix(&self) -> String {
        format!("sv{}", self.tag)
    }

    /// The labels of the walls' own objects.
    fn own(&self) -> Labels {
        let whose: Vec<&str> = self.labels.values().map(String::as_str).collect();
        Labels::from([(LABEL.to_owned(), whose.join(" "))])
    }

    /// Checks that the walls stand around a network with these labels, and sets their rules again. Waits for
    /// them if they are about to be raised.
    pub async fn check(&self, labels: &Labels) -> Result<(), EngineError> {
        if !self.are_around(labels) {
            return Ok(());
        }
        let until = Instant::now() + RAISED_WITHIN;
        loop {
            let raised = self.raised.notified();
            if let Some(checked) = self.check_now(until).await? {
                return checked;
            }
            timeout_at(until, raised).await.map_err(|_| not_yet())?;
        }
    }

    /// What came of a check. `None`: nobody knows whether they stand.
    async fn check_now(
        &self,
        until: Instant,
    ) -> Result<Option<Result<(), EngineError>>, EngineError> {
        let mut state = timeout_at(until, self.state.lock()).await.map_err(|_| not_yet())?;
        // A keeper whose answer nobody waited for is of no more use: whoever gives this up leaves `Unknown`.
        match mem::replace(&mut *state, State::Unknown) {
            State::Unknown => Ok(None),
            State::Fallen(why) => {
                *state = State::Fallen(why.clone());
                Ok(Some(Err(why)))
            }
            State::Standing(mut standing) => {
                let set = set(&mut standing.keeper, &standing.rules).await;
                *state = match &set {
                    Ok(()) => State::Standing(standing),
                    Err(why) => State::Fallen(why.clone()),
                };
                Ok(Some(set))
            }
        }
    }

    /// Raises the walls if they do not stand, and sets their rules again if they do.
    pub async fn raise(&self, docker: &Docker, peers: &Peers) -> Result<(), EngineError> {
        if self.set_again(docker, peers).await {
            return Ok(());
        }
        // It may have to be made. Nobody waits for that.
        let made = docker.helpers.image(None).await;
        let mut state = self.state.lock().await;
        *state = State::Unknown;
        let raised = match made {
            Ok(image) => self.begin(docker, &image, peers).await,
            Err(why) => Err(why),
        };
        let (now, said) = match raised.map_err(exposed) {
            Ok(standing) => (State::Standing(Box::new(standing)), Ok(())),
            Err(why) => (State::Fallen(why.clone()), Err(why)),
        };
        *state = now;
        self.raised.notify_waiters();
        said
    }

    /// Sets the rules again. False: the walls do not stand.
    async fn set_again(&self, docker: &Docker, peers: &Peers) -> bool {
        let mut state = self.state.lock().await;
        let State::Standing(mut standing) = mem::replace(&mut *state, State::Unknown) else {
            return false;
        };
        if standing.read_at.elapsed() >= READ_AGAIN_AFTER {
            standing.read_at = Instant::now();
            let read = async {
                let image = docker.helpers.image(None).await?;
                self.resolvers(docker, &image).await
            };
            match read.await {
                Ok(resolvers) => standing.resolvers = resolvers,
                // The walls stand all the same.
                Err(why) => {
                    tracing::warn!(error = %why, "the name servers of containers are not read again")
                }
            }
        }
        standing.rules = self.rules(&standing.before, &standing.resolvers, peers);
        match set(&mut standing.keeper, &standing.rules).await {
            Ok(()) => {
                *state = State::Standing(standing);
                true
            }
            Err(why) => {
                tracing::warn!(error = %why, "the walls are raised anew");
                false
            }
        }
    }

    async fn begin(
        &self,
        docker: &Docker,
        image: &str,
        peers: &Peers,
    ) -> Result<Standing, EngineError> {
        let (helpers, own) = (&docker.helpers, self.own());
        tether::remove_others(helpers, &own).await?;
        let (resolvers, read_at) = (self.resolvers(docker, image).await?, Instant::now());
        let networks = objects::bridges(&docker.daemon, &self.labels).await?;
        // The bridges of before the walls have other names.
        let (walled, before): (Vec<_>, Vec<_>) =
            networks.into_iter().partition(|(_, bridge)| bridge.starts_with(&self.prefix()));
        let rules = self.rules(&before, &resolvers, peers);
        let mut keeper = Tethered::start(helpers, image, bodies::keeper(image, &own), None).await?;
        set(&mut keeper, &rules).await?;
        self.probe(docker, image, walled.first().map(|(network, _)| network.as_str())).await?;
        tracing::info!(table = self.table(), "the walls around instances stand");
        Ok(Standing { keeper, resolvers, read_at, before, rules })
    }

    fn table(&self) -> String {
        format!("svc_{}", self.tag)
    }

    fn rules(&self, before: &[(String, String)], resolvers: &[IpAddr], peers: &Peers) -> String {
        let bridges = before.iter().map(|(_, bridge)| bridge.clone());
        let bridges: Vec<_> = bridges.chain([format!("{}*", self.prefix())]).collect();
        let of_bridge = |(network, peers): (&String, &Vec<_>)| {
            let known = before.iter().find(|(name, _)| name == network);
            let bridge = known.map_or_else(|| self.bridge_of(network), |(_, known)| known.clone());
            peers.iter().map(|peer| (bridge.clone(), *peer)).collect::<Vec<_>>()
        };
        let of_bridges: Vec<_> = peers.of_network.iter().flat_map(of_bridge).collect();
        rules::rules(&Facts {
            table: &self.table(),
            bridges: &bridges,
            closed: &self.closed,
            resolvers,
            peers: &peers.of_all,
            of_bridges: &of_bridges,
        })
    }

    /// The name servers that the engine gives to containers.
    async fn resolvers(&self, docker: &Docker, image: &str) -> Result<Vec<IpAddr>, EngineError> {
        let body = bodies::resolvers(image, &self.own());
        let line = said(&docker.helpers, image, body).await?;
        Ok(line.split_whitespace().filter_map(|address| address.parse().ok()).collect())
    }

    /// Tries to get out of a walled network: of this one, because an engine may have no room for more, or
    /// else of one that is made for it.
    async fn probe(
        &self,
        docker: &Docker,
        image: &str,
        walled: Option<&str>,
    ) -> Result<(), EngineError> {
        if let Some(network) = walled {
            return self.probe_from(docker, image, network).await;
        }
        let network = format!("svc-walls-{}", self.tag);
        let bridge = format!("{}-probe", self.prefix());
        objects::make_network(docker, &network, &self.own(), Some(&bridge)).await?;
        let tried = self.probe_from(docker, image, &network).await;
        objects::remove_network(&docker.daemon, &network).await?;
        tried
    }

    async fn probe_from(
        &self,
        docker: &Docker,
        image: &str,
        network: &str,
    ) -> Result<(), EngineError> {
        let gateway = objects::gateway(&docker.daemon, network).await?;
        let body = bodies::probe(image, &self.own(), network, [&gateway, ELSEWHERE]);
        match said(&docker.helpers, image, body).await?.as_str() {
            CLOSED => Ok(()),
            open => Err(EngineError::Exposed(open.to_owned())),
        }
    }
}

/// What a helper says, which is then removed.
async fn said(
    helpers: &Helpers,
    image: &str,
    body: ContainerCreateBody,
) -> Result<String, EngineError> {
    let mut helper = Tethered::start(helpers, image, body, None).await?;
    let line = helper.line().await;
    helper.end().await;
    line
}

/// Makes the keeper set the rules.
async fn set(keeper: &mut Tethered, rules: &str) -> Result<(), EngineError> {
    keeper.send(rules).await?;
    match keeper.line().await?.as_str() {
        SET => Ok(()),
        why => Err(EngineError::Exposed(why.to_owned())),
    }
}

/// Whatever keeps the walls from rising leaves containers exposed, if it would do so again.
fn exposed(why: EngineError) -> EngineError {
    match why {
        EngineError::Unreachable(_) | EngineError::Exposed(_) => why,
        EngineError::Refused(why) => EngineError::Exposed(why),
        other => EngineError::Exposed(other.to_string()),
    }
}

fn not_yet() -> EngineError {
    EngineError::Unreachable("the walls around instances are not raised yet".to_owned())
}
