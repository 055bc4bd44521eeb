//! The recipes of images that the program contains.

use crate::config::hosting::HostingArgs;
use actors::ports::recipes::Recipes;
use bytes::Bytes;
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
    let archive = |(name, files): &Shipped| Ok((*name, archive(files)?));
    let archives: io::Result<Vec<_>> = SHIPPED.iter().map(archive).collect();
    let npm_registry = args.recipe_npm_registry.as_ref().map(ToString::to_string);
    Ok(Recipes::new(args.recipe_base_image.clone(), npm_registry, archives?))
}

/// Packs the files. The same files make the same bytes.
fn archive(files: &[(&str, &[u8])]) -> io::Result<Bytes> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, *content)?;
    }
    archive.into_inner().map(Bytes::from)
}
