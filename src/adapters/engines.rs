//! Docker engines, as this installation uses them.

use actors::ports::engines::{Access, Engines};
use container_engine::{
    Engine, EngineError, Labels,
    docker::{Docker, Recognizes},
};
use contract::Timestamp;
use futures_util::future::BoxFuture;
use remote::SPECIAL;
use std::{path::PathBuf, sync::Arc};
use x509_parser::pem::parse_x509_pem;

/// What all engines of this installation have in common.
pub struct DockerEngines {
    /// The image from which that of helpers is made.
    pub builder_base: String,
    /// The name of this node, where there are several.
    pub node: Option<String>,
    /// Where the files are that ssh reads for a moment.
    pub folder: PathBuf,
    /// Networks with these labels are walled. `None`: none is.
    pub walled: Option<Labels>,
}

impl DockerEngines {
    /// The engine with what all have in common. `identity` is what an added one calls itself.
    pub fn prepared(&self, docker: Docker, identity: Option<&String>) -> Docker {
        let mut docker = docker.with_builder_base(&self.builder_base);
        if let Some(node) = &self.node {
            docker = docker.of_node(node);
        }
        match &self.walled {
            Some(labels) => docker.with_walls(labels.clone(), SPECIAL.to_vec(), identity),
            None => docker,
        }
    }
}

impl Engines for DockerEngines {
    fn connect(&self, access: &Access) -> Result<Arc<dyn Engine>, String> {
        let Access { address, credentials, publishes_at, identity } = access;
        let docker = Docker::connect_elsewhere(address, credentials, *publishes_at, &self.folder);
        let docker = docker.map_err(|e| match e {
            EngineError::Refused(why) => why,
            e => e.to_string(),
        })?;
        let docker = self.prepared(docker, identity.as_ref());
        Ok(Arc::new(match identity {
            Some(identity) => docker.recognized_by(Arc::new(Is(identity.clone()))),
            None => docker,
        }))
    }

    fn expiry(&self, certificate: &str) -> Result<Timestamp, String> {
        let unread = "it is no certificate that can be read";
        let (_, pem) = parse_x509_pem(certificate.as_bytes()).map_err(|_| unread)?;
        let read = pem.parse_x509().map_err(|_| unread)?;
        let seconds = read.validity().not_after.timestamp();
        Ok(Timestamp::from_millis(seconds.saturating_mul(1000)))
    }
}

/// The engine calls itself by this name.
struct Is(String);

impl Recognizes for Is {
    fn recognizes(&self, id: String) -> BoxFuture<'_, Result<(), String>> {
        let known = match id == self.0 {
            true => Ok(()),
            false => Err(format!(
                "at its address is the engine {id}, and the instances are at {}: if it was replaced, add it as a \
                 new engine",
                self.0
            )),
        };
        Box::pin(std::future::ready(known))
    }
}
