//! The security advisories of images that the service knows, and what follows from them for a version.

use contract::{
    VersionName, WebUrl,
    images::{Advisory, DockerImage, DockerImageVersion, ImageVersionState},
    instances::Outdated,
    text::ImageRepository,
};
use semver::Version;
use serde::Deserialize;
use std::collections::HashMap;

/// The advisories of all images that come with the program, by their repository. They concern every
/// image from there, also one that an administrator registered under another name.
#[derive(Debug, Default)]
pub struct Advisories(HashMap<ImageRepository, Vec<KnownAdvisory>>);

/// An advisory in the catalogue.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnownAdvisory {
    id: String,
    summary: String,
    url: WebUrl,
    affected: Vec<AffectedRange>,
}

/// Versions that an advisory concerns, in the terms of the Open Source Vulnerability format
/// (<https://ossf.github.io/osv-schema/>): from `introduced`, up to the one before `fixed`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AffectedRange {
    introduced: Version,
    #[serde(default)]
    fixed: Option<Version>,
}

impl AffectedRange {
    /// In the order of versions, in which a pre-release comes before its release.
    fn contains(&self, version: &Version) -> bool {
        *version >= self.introduced && self.fixed.as_ref().is_none_or(|fixed| version < fixed)
    }
}

impl KnownAdvisory {
    /// The advisory as callers see it, if it concerns this version.
    fn about(&self, version: &Version) -> Option<Advisory> {
        let range = self.affected.iter().find(|range| range.contains(version))?;
        Some(Advisory {
            id: self.id.clone(),
            summary: self.summary.clone(),
            url: self.url.clone(),
            fixed_in: range.fixed.as_ref().and_then(|fixed| fixed.to_string().parse().ok()),
        })
    }
}

impl Advisories {
    pub fn new(all: impl IntoIterator<Item = (ImageRepository, Vec<KnownAdvisory>)>) -> Advisories {
        Advisories(all.into_iter().collect())
    }

    /// The advisories that concern a version of an image from this repository. None concerns a version
    /// that is named neither by itself nor by its tag in the form 1.2.3, because it cannot be compared.
    fn of(&self, repository: &ImageRepository, version: &DockerImageVersion) -> Vec<Advisory> {
        let Some(known) = self.0.get(repository) else { return Vec::new() };
        comparable(version).map_or_else(Vec::new, |version| {
            known.iter().filter_map(|advisory| advisory.about(&version)).collect()
        })
    }

    /// The image with the advisories of each version.
    pub fn show(&self, image: &DockerImage) -> DockerImage {
        let mut image = image.clone();
        for version in &mut image.versions {
            version.advisories = self.of(&image.repository, version);
        }
        image
    }

    /// What is known against a version of this image.
    pub fn against(&self, image: &DockerImage, version: &VersionName) -> Option<Outdated> {
        let used = image.versions.iter().find(|known| known.version == *version)?;
        let (advisories, deprecated) = (self.of(&image.repository, used), is_deprecated(used));
        if advisories.is_empty() && !deprecated {
            return None;
        }
        let is_better = |other: &&DockerImageVersion| {
            !is_deprecated(other) && self.of(&image.repository, other).is_empty()
        };
        // Of those that cannot be compared, the last one that was added.
        let better = image.versions.iter().filter(is_better).max_by_key(|other| comparable(other));
        Some(Outdated {
            deprecated,
            reason: used.deprecation_reason.clone(),
            advisories,
            better: better.map(|better| better.version.clone()),
        })
    }
}

/// The version in the form 1.2.3, by its name or else by its tag.
fn comparable(version: &DockerImageVersion) -> Option<Version> {
    let tag = version.tag.as_ref().map(|tag| tag.as_str());
    let names = [Some(version.version.as_str()), tag];
    names.into_iter().flatten().find_map(|name| Version::parse(name).ok())
}

fn is_deprecated(version: &DockerImageVersion) -> bool {
    version.state == ImageVersionState::Deprecated
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::{Id, ImageId, Timestamp};
    use serde_json::json;

    fn advisories() -> Advisories {
        let known = json!([{
            "id": "CVE-1", "summary": "Anybody reads all.", "url": "https://example.com/CVE-1",
            "affected": [
                {"introduced": "0.0.0", "fixed": "8.6.90"},
                {"introduced": "9.0.0", "fixed": "9.10.1-alpha.9"},
                {"introduced": "11.0.0"}
            ]
        }]);
        let known = serde_json::from_value(known).unwrap();
        Advisories::new([("example/server".parse().unwrap(), known)])
    }

    fn version(name: &str, tag: Option<&str>) -> DockerImageVersion {
        DockerImageVersion {
            version: name.parse().unwrap(),
            tag: tag.map(|tag| tag.parse().unwrap()),
            digest: None,
            recipe: None,
            state: ImageVersionState::Active,
            deprecation_reason: None,
            advisories: Vec::new(),
            created_at: Timestamp::from_millis(0),
        }
    }

    #[test]
    fn an_advisory_concerns_the_versions_of_its_ranges() {
        let (known, repository) = (advisories(), "example/server".parse().unwrap());
        for (name, tag, fixed_in) in [
            ("8.6.89", None, Some(Some("8.6.90"))),
            ("8.6.90", None, None),
            ("8.7.0", None, None),
            ("9.0.0-alpha.1", None, None),
            ("9.9.1-alpha.2", None, Some(Some("9.10.1-alpha.9"))),
            ("9.10.1-alpha.8", None, Some(Some("9.10.1-alpha.9"))),
            ("9.10.1-alpha.10", None, None),
            ("9.10.1", None, None),
            ("11.2.0", None, Some(None)),
            ("stable", Some("9.10.0"), Some(Some("9.10.1-alpha.9"))),
            ("15", Some("15"), None),
        ] {
            let found = known.of(&repository, &version(name, tag));
            let fixed: Option<Option<&str>> = found
                .first()
                .map(|advisory| advisory.fixed_in.as_ref().map(|version| version.as_str()));
            assert_eq!(fixed, fixed_in, "{name}");
        }
        let elsewhere = "example/other".parse().unwrap();
        assert!(known.of(&elsewhere, &version("9.10.0", None)).is_empty());
    }

    #[test]
    fn the_better_version_is_the_newest_with_nothing_against_it() {
        let deprecated = DockerImageVersion {
            state: ImageVersionState::Deprecated,
            deprecation_reason: Some("it loses data".parse().unwrap()),
            ..version("9.10.2", None)
        };
        let mut image = DockerImage {
            id: ImageId::of(ulid::Ulid::nil()),
            name: "server".parse().unwrap(),
            repository: "example/server".parse().unwrap(),
            description: None,
            versions: vec![version("9.10.0", None), deprecated],
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
        };
        let against = |image: &DockerImage, version: &str| {
            let known = advisories().against(image, &version.parse().unwrap());
            known.map(|known| (known.advisories.len(), known.deprecated, known.better))
        };
        assert_eq!(against(&image, "9.10.0"), Some((1, false, None)));
        image.versions.extend(["9.10.1", "9.10.1-alpha.9", "mine"].map(|name| version(name, None)));
        let better = "9.10.1".parse().ok();
        assert_eq!(against(&image, "9.10.0"), Some((1, false, better.clone())));
        assert_eq!(against(&image, "9.10.2"), Some((0, true, better)));
        assert_eq!(against(&image, "9.10.1"), None);
        assert_eq!(against(&image, "1.0.0"), None, "it has no such version");
    }
}
