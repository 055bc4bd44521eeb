//! The model's volumes.

use super::model::{Model, Vol};
use crate::{EngineError, Labels};
use bytes::Bytes;

impl Model {
    /// Adds an empty volume.
    pub fn insert_volume(&mut self, name: &str, labels: Labels) {
        self.volumes.insert(name.to_owned(), Vol { labels, bytes: 0 });
    }

    /// The content of a volume: how many bytes it holds.
    pub fn read_volume(&self, name: &str) -> Result<Bytes, EngineError> {
        let missing = || EngineError::Missing(format!("volume {name}"));
        let volume = self.volumes.get(name).ok_or_else(missing)?;
        Ok(volume.bytes.to_string().into())
    }

    pub fn write_volume(&mut self, name: &str, content: &[u8]) -> Result<(), EngineError> {
        let missing = || EngineError::Missing(format!("volume {name}"));
        let volume = self.volumes.get_mut(name).ok_or_else(missing)?;
        let bytes = str::from_utf8(content).ok().and_then(|text| text.parse().ok());
        volume.bytes = bytes.ok_or_else(|| EngineError::Refused("unexpected EOF".to_owned()))?;
        Ok(())
    }

    pub fn remove_volume(&mut self, name: &str) -> Result<(), EngineError> {
        let mut mounts = self.containers.values().filter_map(|made| made.spec.as_ref());
        if mounts.any(|spec| spec.mounts.iter().any(|mount| mount.volume == name)) {
            return Err(EngineError::Refused(format!("the volume {name} is in use")));
        }
        self.volumes.remove(name);
        Ok(())
    }
}
