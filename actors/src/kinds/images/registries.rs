//! Where images are really pulled from, and how registries know us. Both are configured.

use container_engine::Login;
use contract::text::{ImageDigest, ImageRepository, ImageTag};
use std::collections::HashMap;

/// What the configuration says of registries.
#[derive(Debug, Default)]
pub struct Registries {
    /// Repositories that stand in for others, such as a mirror for a public one.
    pub instead: HashMap<String, String>,
    /// How each registry knows us, by its host.
    pub logins: HashMap<String, Login>,
}

impl Registries {
    /// Where an image is really pulled from and pushed to.
    pub fn repository<'a>(&'a self, repository: &'a ImageRepository) -> &'a str {
        let repository = repository.as_str();
        self.instead.get(repository).map_or(repository, String::as_str)
    }

    /// What the engine is asked for: by digest where that is settled, or else by tag.
    pub fn reference(
        &self,
        repository: &ImageRepository,
        tag: &ImageTag,
        digest: Option<&ImageDigest>,
    ) -> String {
        let repository = self.repository(repository);
        match digest {
            Some(digest) => format!("{repository}@{digest}"),
            None => format!("{repository}:{tag}"),
        }
    }

    /// How the registry of a reference knows us.
    pub fn login(&self, reference: &str) -> Option<&Login> {
        self.logins.get(host(reference))
    }
}

/// The registry of a reference. One without a host is of Docker Hub.
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
