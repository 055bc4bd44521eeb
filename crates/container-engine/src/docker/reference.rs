//! Parses references to images.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reference<'a> {
    pub repository: &'a str,
    /// A tag, or a digest such as `sha256:…`.
    pub version: &'a str,
}

impl<'a> Reference<'a> {
    /// Without a tag the version is `latest`: otherwise the daemon would pull all tags.
    pub fn of(reference: &'a str) -> Reference<'a> {
        if let Some((name, version)) = reference.split_once('@') {
            // A tag beside a digest is ignored.
            return Reference { repository: Reference::of(name).repository, version };
        }
        match reference.rsplit_once(':') {
            // A colon before a slash belongs to a port.
            Some((repository, version)) if !version.contains('/') => {
                Reference { repository, version }
            }
            _ => Reference { repository: reference, version: "latest" },
        }
    }

    /// Whether the reference is the id of an image, or a prefix of one. No registry knows it.
    pub fn is_id(reference: &str) -> bool {
        reference.starts_with("sha256:")
    }

    /// The registry, as credentials name it.
    pub fn registry(&self) -> &'a str {
        match self.repository.split_once('/') {
            Some((host, _)) if host == "localhost" || host.contains(['.', ':']) => host,
            _ => "https://index.docker.io/v1/",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_come_apart() {
        for (reference, repository, version) in [
            ("x", "x", "latest"),
            ("a/x:1", "a/x", "1"),
            ("127.0.0.1:5000/x", "127.0.0.1:5000/x", "latest"),
            ("127.0.0.1:5000/x:1", "127.0.0.1:5000/x", "1"),
            ("r.example/x@sha256:aa", "r.example/x", "sha256:aa"),
            ("r.example:1/x:1@sha256:aa", "r.example:1/x", "sha256:aa"),
        ] {
            assert_eq!(Reference::of(reference), Reference { repository, version });
        }
    }

    #[test]
    fn a_first_part_with_a_dot_is_a_registry() {
        assert_eq!(Reference::of("127.0.0.1:5000/x:1").registry(), "127.0.0.1:5000");
        assert_eq!(Reference::of("r.example/x").registry(), "r.example");
        assert_eq!(Reference::of("library/x").registry(), "https://index.docker.io/v1/");
        assert!(Reference::is_id("sha256:aa") && !Reference::is_id("x@sha256:aa"));
    }
}
