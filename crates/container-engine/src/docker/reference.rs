//! References to images, taken apart.

/// A reference and what it consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reference<'a> {
    pub repository: &'a str,
    /// A tag, or a digest such as `sha256:…`.
    pub version: &'a str,
}

impl<'a> Reference<'a> {
    /// Without a tag it is `latest`: asked for nothing, the daemon would fetch all tags.
    pub fn of(reference: &'a str) -> Reference<'a> {
        if let Some((name, version)) = reference.split_once('@') {
            // a tag beside a digest says nothing
            return Reference { repository: Reference::of(name).repository, version };
        }
        match reference.rsplit_once(':') {
            // a colon before a slash is that of a port
            Some((repository, version)) if !version.contains('/') => {
                Reference { repository, version }
            }
            _ => Reference { repository: reference, version: "latest" },
        }
    }

    /// Whether no registry can know it: the id of an image, or the beginning of one.
    pub fn is_id(reference: &str) -> bool {
        reference.starts_with("sha256:")
    }

    /// The registry, as logins are filed.
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
