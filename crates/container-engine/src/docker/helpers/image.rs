//! The image of helpers. It is made once, by the daemon's own builder, from files of this crate.

use super::Sends;
use crate::{
    BASE_IMAGE, BuildEvent, BuildSpec, EngineError, Image, Labels,
    docker::{
        build::{self, Network},
        context,
        daemon::Daemon,
        images,
    },
};
use data_encoding::HEXLOWER;
use futures_util::{StreamExt, stream};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The label with the hash of what the image was made from.
const LABEL: &str = "svc.builder";
/// Bytes of memory for the steps.
const MEMORY: u64 = 1 << 30;

macro_rules! files {
    ($($name:literal),+) => { [$(($name, include_str!(concat!("image/", $name)))),+] };
}
const FILES: [(&str, &str); 9] =
    files!["Dockerfile", "box", "bring", "disk", "keep", "prepare", "probe", "resolvers", "walls"];

/// The id of the image, which is made if it is missing.
pub(super) async fn ensure(
    daemon: &Daemon,
    base: &str,
    sends: Option<&Sends>,
) -> Result<String, EngineError> {
    let hash = FILES.iter().fold(Sha256::new().chain_update(base), |hash, (name, text)| {
        hash.chain_update([0]).chain_update(name).chain_update([0]).chain_update(text)
    });
    let mut hash = HEXLOWER.encode(&hash.finalize());
    hash.truncate(16);
    let tag = format!("svc/builder:{hash}");
    let labels = Labels::from([(LABEL.to_owned(), hash)]);
    // The base may have labels of its own.
    let is_made = |image: &Image| image.labels.get(LABEL) == labels.get(LABEL);
    if let Some(found) = images::find(daemon, &tag).await?.filter(is_made) {
        return Ok(found.id);
    }
    let line = "making the image of builds, once";
    tracing::info!(base, "{line}");
    send(sends, BuildEvent::Line(line.to_owned())).await;
    let spec = BuildSpec {
        tag,
        dockerfile: "Dockerfile".to_owned(),
        args: BTreeMap::from([(BASE_IMAGE.to_owned(), base.to_owned())]),
        labels,
        memory: MEMORY,
        isolation: None,
    };
    let files = FILES.map(|(name, text)| (name, text.as_bytes()));
    let context = context(files).map_err(|e| EngineError::Refused(e.to_string()))?;
    let context = stream::iter([Ok(context)]).boxed();
    let mut events = build::build(daemon, spec, Network::Usual, context).await?;
    while let Some(event) = events.next().await {
        match event {
            Ok(BuildEvent::Built(built)) => return Ok(built.image),
            Ok(line) => send(sends, line).await,
            Err(EngineError::Unreachable(why)) => return Err(EngineError::Unreachable(why)),
            Err(e) => {
                return Err(EngineError::Refused(format!(
                    "the image of builds cannot be made from {base}: {e}"
                )));
            }
        }
    }
    Err(EngineError::Unreachable("the image of builds was not made to its end".to_owned()))
}

async fn send(sends: Option<&Sends>, event: BuildEvent) {
    if let Some(sends) = sends {
        let _ = sends.send(Ok(event)).await;
    }
}
