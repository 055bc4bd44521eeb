//! The stylesheet, the scripts, the icon and the font, which is Inter, cut to Latin letters. Its license
//! stands beside it. Their addresses contain the hash of all of them, so browsers keep
//! them for as long as they are the same, and scripts find each other.

use actix_web::{HttpResponse, http::header, web};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// A file of the site.
struct Asset {
    name: &'static str,
    kind: &'static str,
    content: &'static [u8],
}

const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const ICON: &str = "image/svg+xml";
const FONT: &str = "font/woff2";

/// Each file is one row: its name in the folder `assets`, and its media type.
macro_rules! assets {
    ($($name:literal: $kind:expr),+ $(,)?) => {
        static ALL: &[Asset] = &[$(Asset {
            name: $name,
            kind: $kind,
            content: include_bytes!(concat!("../assets/", $name)),
        }),+];
    };
}

assets! {
    "style.css": STYLE,
    "icon.svg": ICON,
    "inter.woff2": FONT,
    "site.js": SCRIPT,
    "live.js": SCRIPT,
    "palette.js": SCRIPT,
    "sha256.js": SCRIPT,
    "upload.js": SCRIPT,
}

static FOLDER: LazyLock<String> = LazyLock::new(|| {
    let hash = ALL.iter().fold(Sha256::new(), |hash, asset| hash.chain_update(asset.content));
    let hash = hash.finalize();
    HEXLOWER.encode(hash.get(..8).unwrap_or_default())
});

/// The address of a file, for the templates.
pub fn asset(name: &str) -> String {
    format!("/assets/{}/{name}", *FOLDER)
}

pub fn configure(app: &mut web::ServiceConfig) {
    for asset in ALL {
        app.route(&self::asset(asset.name), web::get().to(async || serve(asset)));
    }
}

fn serve(asset: &Asset) -> HttpResponse {
    HttpResponse::Ok()
        .content_type(asset.kind)
        .insert_header((header::CACHE_CONTROL, "public, max-age=31536000, immutable"))
        .body(asset.content)
}
