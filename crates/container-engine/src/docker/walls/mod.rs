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
use crate::{EngineError, Labels, WayOut};
use data_encoding::BASE32_NOPAD;
use rules::{ELSEWHERE, Facts};
use sha2::{Digest, Sha256};
use std::{net::IpAddr, time::Duration};
use tokio::time::timeout;

/// Label: whose walls a container or a network is for.
const LABEL: &str = "svc.walls";
/// How long a network waits for the walls, which may have to be raised first.
const RAISED_WITHIN: Duration = Duration::from_secs(60);
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
    /// Made of the labels. In the names of the bridges and of the table.
    tag: String,
    state: tokio::sync::Mutex<State>,
}

enum State {
    /// They were not raised.
    Unknown,
    Standing(Standing),
    /// They cannot be raised.
    Fallen(EngineError),
}

struct Standing {
    keeper: Tethered,
    /// The bridges that were there before the walls.
    others: Vec<String>,
    resolvers: Vec<IpAddr>,
    rules: String,
}

impl Docker {
    /// Puts walls around the networks with these labels. Containers on them do not reach the `closed`
    /// networks of addresses, which are given by an address and the bits that count.
    #[must_use]
    pub fn with_walls(mut self, labels: Labels, closed: Vec<(IpAddr, u8)>) -> Docker {
        let tag = short(labels.iter().flat_map(|(name, value)| [name, value]), 6);
        self.walls =
            Some(Walls { labels, closed, tag, state: tokio::sync::Mutex::new(State::Unknown) });
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
        self.are_around(labels)
            .then(|| format!("{}{}", self.prefix(), short([&network.to_owned()], 7)))
    }

    fn prefix(&self) -> String {
        format!("sv{}", self.tag)
    }

    /// The labels of the walls' own objects.
    fn own(&self) -> Labels {
        let whose: Vec<&str> = self.labels.values().map(String::as_str).collect();
        Labels::from([(LABEL.to_owned(), whose.join(" "))])
    }

    /// Checks that the walls stand around a network with these labels, and sets their rules again.
    pub async fn check(&self, labels: &Labels) -> Result<(), EngineError> {
        if !self.are_around(labels) {
            return Ok(());
        }
        let late = |_| EngineError::Unreachable("the walls are being raised".to_owned());
        let mut state = timeout(RAISED_WITHIN, self.state.lock()).await.map_err(late)?;
        match &mut *state {
            State::Unknown => {
                Err(EngineError::Unreachable("the walls are not raised yet".to_owned()))
            }
            State::Fallen(why) => Err(why.clone()),
            State::Standing(standing) => {
                let set = set(&mut standing.keeper, &standing.rules).await;
                if let Err(why) = &set {
                    *state = State::Fallen(why.clone());
                }
                set
            }
        }
    }

    /// Raises the walls if they do not stand, and sets their rules again if they do.
    pub async fn raise(&self, docker: &Docker, way_out: &WayOut) -> Result<(), EngineError> {
        let mut state = self.state.lock().await;
        if let State::Standing(standing) = &mut *state {
            let Standing { others, resolvers, keeper, rules } = standing;
            *rules = self.rules(others, resolvers, way_out);
            match set(keeper, rules).await {
                Ok(()) => return Ok(()),
                Err(why) => tracing::warn!(error = %why, "the walls are raised anew"),
            }
        }
        // Until they stand again. Whoever gives this up leaves it so.
        *state = State::Unknown;
        match self.begin(docker, way_out).await {
            Ok(standing) => *state = State::Standing(standing),
            Err(why) => {
                *state = State::Fallen(why.clone());
                return Err(why);
            }
        }
        Ok(())
    }

    async fn begin(&self, docker: &Docker, way_out: &WayOut) -> Result<Standing, EngineError> {
        let (helpers, own) = (&docker.helpers, self.own());
        tether::remove_others(helpers, &own).await?;
        let image = helpers.image(None).await.map_err(fallen)?;
        let resolvers = said(helpers, &image, bodies::resolvers(&image, &own)).await?;
        let resolvers: Vec<IpAddr> =
            resolvers.split_whitespace().filter_map(|address| address.parse().ok()).collect();
        let mut others = objects::bridges(&docker.daemon, &self.labels).await?;
        others.retain(|bridge| !bridge.starts_with(&self.prefix()));
        let rules = self.rules(&others, &resolvers, way_out);
        let mut keeper =
            Tethered::start(helpers, &image, bodies::keeper(&image, &own), None).await?;
        set(&mut keeper, &rules).await?;
        self.probe(docker, &image).await?;
        tracing::info!(table = self.table(), "the walls around instances stand");
        Ok(Standing { keeper, others, resolvers, rules })
    }

    fn table(&self) -> String {
        format!("svc_{}", self.tag)
    }

    fn rules(&self, others: &[String], resolvers: &[IpAddr], way_out: &WayOut) -> String {
        rules::rules(&Facts {
            table: &self.table(),
            prefix: &self.prefix(),
            others,
            closed: &self.closed,
            resolvers,
            way_out,
        })
    }

    /// Tries to get out of a walled network.
    async fn probe(&self, docker: &Docker, image: &str) -> Result<(), EngineError> {
        let name = format!("svc-walls-{}", self.tag);
        let bridge = format!("{}-probe", self.prefix());
        let own = self.own();
        objects::make_network(docker, &name, &own, Some(&bridge)).await?;
        let tried = async {
            let gateway = objects::gateway(&docker.daemon, &name).await?;
            let body = bodies::probe(image, &own, &name, [&gateway, ELSEWHERE]);
            said(&docker.helpers, image, body).await
        };
        let tried = tried.await;
        let removed = objects::remove_network(&docker.daemon, &name).await;
        match tried?.as_str() {
            CLOSED => removed,
            open => Err(exposed(open)),
        }
    }
}

/// What a helper says, which is then removed.
async fn said(
    helpers: &Helpers,
    image: &str,
    body: bollard::models::ContainerCreateBody,
) -> Result<String, EngineError> {
    let mut helper = Tethered::start(helpers, image, body, None).await?;
    let line = helper.line().await.map_err(fallen);
    helper.end().await;
    line
}

/// Makes the keeper set the rules.
async fn set(keeper: &mut Tethered, rules: &str) -> Result<(), EngineError> {
    keeper.send(rules).await?;
    match keeper.line().await.map_err(fallen)?.as_str() {
        SET => Ok(()),
        why => Err(exposed(why)),
    }
}

fn fallen(e: EngineError) -> EngineError {
    match e {
        EngineError::Refused(why) => exposed(&why),
        other => other,
    }
}

fn exposed(why: &str) -> EngineError {
    EngineError::Exposed(why.to_owned())
}
