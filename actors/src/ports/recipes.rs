//! The recipes of images that come with the program. The service builds such an image itself, when
//! an instance needs it for the first time.

use bytes::Bytes;
use contract::text::Slug;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Hexadecimal digits of a recipe's digest.
const DIGITS: usize = 16;

/// All recipes, and what their builds need of this installation.
#[derive(Debug, Default)]
pub struct Recipes {
    /// The reference of the image that all recipes build upon.
    pub base_image: String,
    /// The npm registry of builds. `None`: npm's own default.
    pub npm_registry: Option<String>,
    by_name: BTreeMap<String, Recipe>,
}

#[derive(Debug)]
pub struct Recipe {
    /// The files of the build as a tar archive, with a `Dockerfile` at its root.
    pub context: Bytes,
    /// The recipe and a digest of its files and of the name of the base image. Images with the same
    /// label value are made from the same recipe.
    pub label: String,
}

impl Recipes {
    /// Takes the archives of the recipes by their names.
    pub fn new(
        base_image: String,
        npm_registry: Option<String>,
        archives: impl IntoIterator<Item = (&'static str, Bytes)>,
    ) -> Recipes {
        let recipe = |(name, context): (&str, Bytes)| {
            let digest = Sha256::new().chain_update(&base_image).chain_update([0]);
            let mut digest = HEXLOWER.encode(&digest.chain_update(&context).finalize());
            digest.truncate(DIGITS);
            (name.to_owned(), Recipe { context, label: format!("{name}-{digest}") })
        };
        let by_name = archives.into_iter().map(recipe).collect();
        Recipes { base_image, npm_registry, by_name }
    }

    pub fn get(&self, name: &Slug) -> Option<&Recipe> {
        self.by_name.get(name.as_str())
    }
}

/// The repository of the images of a recipe. They are in no registry.
pub fn repository(recipe: &Slug) -> String {
    format!("svc/recipes/{recipe}")
}
