//! The files of a build that this program contains.

use bytes::Bytes;
use std::io;

/// Packs files into the context of a build. The same files make the same bytes.
///
/// # Errors
///
/// A path is not one of an archive.
pub fn context<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> io::Result<Bytes> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, content)?;
    }
    archive.into_inner().map(Bytes::from)
}
