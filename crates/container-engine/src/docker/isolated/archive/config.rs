//! The configuration of an image.
//!
//! The daemon finds a field whatever the case of its letters, and the last one of a name counts. So only
//! fields with the exact names of the specification pass; what else a build wrote is gone.

use super::Failure;
use crate::Labels;
use contract::Timestamp;
use serde_json::{Map, Value, json};

/// Fields of an image that pass: its platform, and what people read.
const OF_IMAGE: [&str; 6] = ["architecture", "author", "history", "os", "os.version", "variant"];
/// Fields of the containers of an image that pass. Its labels and its layers are written anew.
const OF_CONTAINERS: [&str; 13] = [
    "ArgsEscaped",
    "Cmd",
    "Entrypoint",
    "Env",
    "ExposedPorts",
    "Healthcheck",
    "OnBuild",
    "Shell",
    "StopSignal",
    "StopTimeout",
    "User",
    "Volumes",
    "WorkingDir",
];
/// Labels with this prefix belong to the service.
const OURS: &str = "svc.";

pub(super) struct Config {
    image: Map<String, Value>,
    containers: Map<String, Value>,
    labels: Map<String, Value>,
    layers: Vec<String>,
}

impl Config {
    pub fn read(text: &[u8]) -> Result<Config, Failure> {
        let mut image: Map<String, Value> = serde_json::from_slice(text)?;
        let object = |value: Option<Value>| match value {
            Some(Value::Object(object)) => object,
            _ => Map::new(),
        };
        let mut containers = object(image.remove("config"));
        let mut labels = object(containers.remove("Labels"));
        labels.retain(|name, value| value.is_string() && !name.starts_with(OURS));
        let layers = object(image.remove("rootfs")).remove("diff_ids").unwrap_or_default();
        let layers = serde_json::from_value(layers)?;
        image.retain(|name, _| OF_IMAGE.contains(&name.as_str()));
        containers.retain(|name, _| OF_CONTAINERS.contains(&name.as_str()));
        Ok(Config { image, containers, labels, layers })
    }

    /// The digests of the unpacked layers, the lowest first: `sha256:…`.
    pub fn layers(&self) -> &[String] {
        &self.layers
    }

    /// The configuration with these labels, of an image that was made now.
    pub fn written(self, labels: &Labels, now: Timestamp) -> Result<Vec<u8>, Failure> {
        let Config { mut image, mut containers, labels: mut all, layers } = self;
        all.extend(labels.iter().map(|(name, value)| (name.clone(), value.clone().into())));
        containers.insert("Labels".to_owned(), all.into());
        image.insert("config".to_owned(), containers.into());
        image.insert("created".to_owned(), now.to_string().into());
        image.insert("rootfs".to_owned(), json!({"type": "layers", "diff_ids": layers}));
        Ok(serde_json::to_vec(&image)?)
    }
}
