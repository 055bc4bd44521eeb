//! The model's images and registries.

use super::model::Model;
use crate::{EngineError, Image, Labels, RegistryLogin};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use serde_json::json;
use sha2::{Digest, Sha256};

/// The size in bytes of every image.
const SIZE: u64 = 64 << 20;

/// An image in a registry.
#[derive(Debug, Clone)]
pub(super) struct Published {
    /// `repository:tag`
    pub reference: String,
    pub digest: String,
    pub image: Image,
}

/// `sha256:` and a hash of the parts.
pub(super) fn digest(parts: &[&str]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(parts.join("\n"))))
}

/// The repository, and the tag or digest.
pub(super) fn apart(reference: &str) -> (&str, &str) {
    if let Some((name, digest)) = reference.split_once('@') {
        return (apart(name).0, digest);
    }
    match reference.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (reference, "latest"),
    }
}

fn no_image(reference: &str, why: &str) -> EngineError {
    EngineError::NoImage { image: reference.to_owned(), why: why.to_owned() }
}

impl Model {
    /// Adds an image of this name, as if it had been built here.
    pub fn add_image(&mut self, id: String, tag: &str, labels: Labels) -> Image {
        let created_at = self.now();
        self.take_name(tag);
        if let Some(known) = self.images.iter_mut().find(|image| image.id == id) {
            known.tags.push(tag.to_owned());
            return known.clone();
        }
        let tags = vec![tag.to_owned()];
        let image = Image { id, tags, digests: Vec::new(), labels, size: SIZE, created_at };
        self.images.push(image.clone());
        image
    }

    /// Takes the name from the image that has it.
    fn take_name(&mut self, tag: &str) {
        for image in &mut self.images {
            image.tags.retain(|known| known != tag);
        }
    }

    pub fn image(&self, reference: &str) -> Option<&Image> {
        let (repository, version) = apart(reference);
        let tagged = format!("{repository}:{version}");
        let digested = format!("{repository}@{version}");
        self.images.iter().find(|image| {
            image.id == reference
                || image.tags.contains(&tagged)
                || image.digests.contains(&digested)
        })
    }

    /// The archive of an image: its id, names and labels as JSON.
    pub fn save_image(&self, reference: &str) -> Result<Bytes, EngineError> {
        let image = self.image(reference).ok_or_else(|| no_image(reference, "not found"))?;
        let archive = json!({ "id": image.id, "tags": image.tags, "labels": image.labels });
        Ok(archive.to_string().into())
    }

    pub fn load_image(&mut self, archive: &[u8]) -> Result<(), EngineError> {
        #[derive(serde::Deserialize)]
        struct Archive {
            id: String,
            tags: Vec<String>,
            labels: Labels,
        }
        let broken = |_| EngineError::Refused("unexpected EOF".to_owned());
        let Archive { id, tags, labels } = serde_json::from_slice(archive).map_err(broken)?;
        tags.iter().for_each(|tag| self.take_name(tag));
        self.images.retain(|image| image.id != id);
        let created_at = self.now();
        let digests = Vec::new();
        self.images.push(Image { id, tags, digests, labels, size: SIZE, created_at });
        Ok(())
    }

    fn published(
        &self,
        reference: &str,
        login: Option<&RegistryLogin>,
    ) -> Result<Published, EngineError> {
        let (repository, version) = apart(reference);
        self.admit(reference, login)?;
        let found = self.registry.iter().find(|published| {
            let (known, tag) = apart(&published.reference);
            known == repository && (tag == version || published.digest == version)
        });
        found.cloned().ok_or_else(|| no_image(reference, "manifest unknown"))
    }

    /// Refuses a login that the registry of this reference does not accept.
    fn admit(&self, reference: &str, login: Option<&RegistryLogin>) -> Result<(), EngineError> {
        let needed = self.logins.iter().find(|(host, _)| {
            reference.strip_prefix(host.as_str()).is_some_and(|rest| rest.starts_with('/'))
        });
        match needed {
            Some((_, needed)) if login != Some(needed) => {
                Err(no_image(reference, "unauthorized: authentication required"))
            }
            _ => Ok(()),
        }
    }

    pub fn resolve(
        &self,
        reference: &str,
        login: Option<&RegistryLogin>,
    ) -> Result<String, EngineError> {
        self.published(reference, login).map(|published| published.digest)
    }

    pub fn ensure_image(
        &mut self,
        reference: &str,
        login: Option<&RegistryLogin>,
    ) -> Result<Image, EngineError> {
        if let Some(image) = self.image(reference) {
            return Ok(image.clone());
        }
        if reference.starts_with("sha256:") {
            return Err(no_image(reference, "it is not on this machine"));
        }
        let published = self.published(reference, login)?;
        let (repository, version) = apart(reference);
        let digest = format!("{repository}@{}", published.digest);
        let is_tag = version != published.digest;
        let tag = is_tag.then(|| format!("{repository}:{version}"));
        if let Some(tag) = &tag {
            self.take_name(tag);
        }
        let known = self.images.iter().position(|image| image.id == published.image.id);
        let mut image = match known {
            Some(at) => self.images.remove(at),
            None => Image { tags: Vec::new(), digests: Vec::new(), ..published.image },
        };
        image.tags.extend(tag);
        if !image.digests.contains(&digest) {
            image.digests.push(digest);
        }
        self.images.push(image.clone());
        Ok(image)
    }

    pub fn tag(&mut self, reference: &str, repository: &str, tag: &str) -> Result<(), EngineError> {
        let image = self.image(reference);
        let missing = || EngineError::Missing(format!("image {reference}"));
        let id = image.ok_or_else(missing)?.id.clone();
        let name = format!("{repository}:{tag}");
        self.take_name(&name);
        if let Some(image) = self.images.iter_mut().find(|image| image.id == id) {
            image.tags.push(name);
        }
        Ok(())
    }

    pub fn push(
        &mut self,
        repository: &str,
        tag: &str,
        login: Option<&RegistryLogin>,
    ) -> Result<String, EngineError> {
        let reference = format!("{repository}:{tag}");
        let image = self.image(&reference).cloned();
        let image = image.ok_or_else(|| no_image(&reference, "it does not exist locally"))?;
        self.admit(&reference, login)?;
        let digest = digest(&["manifest", &image.id]);
        let named = format!("{repository}@{digest}");
        if let Some(known) = self.images.iter_mut().find(|known| known.id == image.id)
            && !known.digests.contains(&named)
        {
            known.digests.push(named);
        }
        self.registry.retain(|published| published.reference != reference);
        self.registry.push(Published { reference, digest: digest.clone(), image });
        Ok(digest)
    }

    pub fn remove_image(&mut self, reference: &str) -> Result<(), EngineError> {
        let Some(image) = self.image(reference).cloned() else { return Ok(()) };
        let others = image.tags.iter().filter(|tag| *tag != reference).count();
        let is_name = image.tags.iter().any(|tag| tag == reference);
        if is_name && others > 0 {
            self.take_name(reference);
            return Ok(());
        }
        if others > 1 {
            return Err(EngineError::Refused(format!("{reference} has several names")));
        }
        if self.containers.values().any(|made| made.container.image == image.id) {
            return Err(EngineError::Refused(format!("a container uses {reference}")));
        }
        self.images.retain(|known| known.id != image.id);
        Ok(())
    }
}
