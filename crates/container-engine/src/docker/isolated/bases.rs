//! The images that builds stand on, each on a volume of its own, which all builds upon it read. The first of
//! them brings the image there; the others need neither the time nor the room on their disks.

use super::{
    bodies,
    programs::{Programs, Variables},
};
use crate::{
    EngineError, Isolation,
    docker::{
        helpers::{Helpers, tether::Tethered},
        images, objects,
    },
};
use data_encoding::HEXLOWER;
use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use std::io;

/// Where the volume is. Only the container that brings the image writes there.
pub(super) const MOUNT: &str = "/base";
/// The beginning of the names of these volumes.
const VOLUMES: &str = "svc-base-";
/// The name of the image there. Nobody outside of the containers sees it.
pub(super) const NAME: &str = "localhost/svc-base:1";
/// How many volumes are kept. The oldest go first.
pub(super) const MOST: usize = 8;

pub(super) struct Base {
    /// The image as the daemon knows it.
    id: String,
    /// What tells this image and installation from others, in 32 hexadecimal digits.
    pub hash: String,
}

/// Whether a volume with the labels of builds has a base image, and not the disk of an owner.
pub(super) fn is_base(volume: &str) -> bool {
    volume.starts_with(VOLUMES)
}

impl Base {
    /// An image of this machine, and its volume, which may be empty yet.
    pub async fn of(
        helpers: &Helpers,
        image: &str,
        isolation: &Isolation,
    ) -> Result<Base, EngineError> {
        let id = images::ensure(&helpers.daemon, image, None).await?.id;
        // Several installations may share the engine. Their labels differ.
        let parts = isolation.labels.iter().flat_map(|(name, value)| [name, value]).chain([&id]);
        let hash =
            parts.fold(Sha256::new(), |hash, part| hash.chain_update(part).chain_update([0]));
        let mut hash = HEXLOWER.encode(&hash.finalize());
        hash.truncate(32);
        let base = Base { id, hash };
        objects::ensure_volume(&helpers.daemon, &base.volume(), &isolation.labels).await?;
        Ok(base)
    }

    pub fn volume(&self) -> String {
        format!("{VOLUMES}{}", self.hash)
    }

    /// The option of `buildah` with which a build finds the image.
    pub fn option(&self) -> String {
        format!("--storage-opt=overlay.imagestore={MOUNT}/store")
    }

    /// Whether these programs, which read the volume, find the image there.
    pub async fn is_there(&self, programs: &Programs<'_>) -> Result<bool, EngineError> {
        let look = ["buildah", &self.option(), "inspect", "--type=image", NAME];
        Ok(programs.run(look).await?.code == 0)
    }

    /// Brings the image there, with as much memory as a build has.
    pub async fn bring(
        &self,
        helpers: &Helpers,
        helper: &str,
        memory: u64,
        isolation: &Isolation,
    ) -> Result<(), EngineError> {
        let client = helpers.daemon.client().await;
        let client = client.map_err(|failure| failure.about_image(&self.id))?;
        let body = bodies::bringer(helper, memory, isolation, &self.volume());
        let container = Tethered::start(helpers, helper, body, None).await?;
        let programs = Programs { daemon: &helpers.daemon, container };
        let archive = client.export_image(&self.id).map(|part| part.map_err(io::Error::other));
        let folders = [("HOME", "home"), ("TMPDIR", "tmp"), ("XDG_RUNTIME_DIR", "tmp")];
        let folders = folders.map(|(name, at)| (name.to_owned(), format!("{MOUNT}/{at}")));
        let command = ["/usr/libexec/svc/bring", NAME];
        let brought = programs.feed(Variables::from(folders), command, archive.boxed()).await;
        programs.container.end().await;
        let ended = brought?;
        match ended.code {
            0 => Ok(()),
            _ => Err(EngineError::Refused(format!(
                "the base image does not come to the builds: {}",
                ended.last_words()
            ))),
        }
    }
}
