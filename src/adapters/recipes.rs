//! The recipes of images that the program contains.

use crate::config::hosting::HostingArgs;
use actors::ports::recipes::Recipes;
use container_engine::docker::context;
use std::io;

/// A recipe and its files.
type Shipped = (&'static str, &'static [(&'static str, &'static [u8])]);

macro_rules! recipes {
    ($($name:literal: $($file:literal),+;)+) => {
        &[$(($name, &[$((
            $file,
            include_bytes!(concat!("../../data/images/", $name, "/", $file)),
        )),+])),+]
    };
}

/// The folders of `data/images`.
const SHIPPED: &[Shipped] = recipes! {
    "vendure-server": "Dockerfile", "package.json", "package-lock.json", "server.js";
    "vendure-dashboard": "Dockerfile", "package.json", "package-lock.json", "server.js";
    "vendure-storefront": "Dockerfile", "server.js", "pages.js", "platform.js", "shop.js", "languages.js",
        "languages/en.json", "languages/fr.json", "languages/de.json", "languages/es.json";
};

pub fn read(args: &HostingArgs) -> io::Result<Recipes> {
    let archive = |(name, files): &Shipped| Ok((*name, context(files.iter().copied())?));
    let archives: io::Result<Vec<_>> = SHIPPED.iter().map(archive).collect();
    let npm_registry = args.recipe_npm_registry.as_ref().map(ToString::to_string);
    Ok(Recipes::new(args.recipe_base_image.clone(), npm_registry, archives?))
}
