//! The configured registries: mirrors of repositories, and credentials.

use container_engine::RegistryLogin;
use contract::text::{ImageDigest, ImageRepository, ImageTag};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Registries {
    /// Maps a repository to the repository that stands in for it, such as a mirror.
    pub instead: HashMap<String, String>,
    /// The credentials for each registry, by host.
    pub logins: HashMap<String, RegistryLogin>,
}

impl Registries {
    /// The repository that an image is pulled from and pushed to.
    pub fn repository<'a>(&'a self, repository: &'a ImageRepository) -> &'a str {
        let repository = repository.as_str();
        self.instead.get(repository).map_or(repository, String::as_str)
    }

    /// The reference of an image by its tag, which may move.
    pub fn by_tag(&self, repository: &ImageRepository, tag: &ImageTag) -> String {
        format!("{}:{tag}", self.repository(repository))
    }

    /// The reference of an image by its digest, which names the same bytes forever.
    pub fn by_digest(&self, repository: &ImageRepository, digest: &ImageDigest) -> String {
        format!("{}@{digest}", self.repository(repository))
    }

    /// The credentials for the registry of a reference.
    pub fn login(&self, reference: &str) -> Option<&RegistryLogin> {
        self.logins.get(host(reference))
    }
}

/// The registry of a reference. A reference without a host belongs to Docker Hub.
fn host(reference: &str) -> &str {
    match reference.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => host,
        _ => "docker.io",
    }
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn a_reference_without_a_host_is_of_docker_hub() {
        assert_eq!(host("postgres:17"), "docker.io");
        assert_eq!(host("parseplatform/parse-server:9"), "docker.io");
        assert_eq!(host("localhost/a:1"), "localhost");
        assert_eq!(host("127.0.0.1:5000/a@sha256:0"), "127.0.0.1:5000");
    }
}
