//! Reads `_CodeSignature/CodeResources`: the list of an app's files with their hashes.
//!
//! Only `files2` is read, which states what each file must be; current versions of iOS also read
//! only this. The rules by which the signer chose the files are ignored: see [`super::resources`].
//!
//! Source: Apple, TN2206 "macOS Code Signing In Depth", "Resource Rules"; Security framework,
//! `resources.cpp`.

use std::collections::BTreeMap;
use std::io::Cursor;

use plist::stream::{Event, Reader};

/// Most bytes of a list. Xcode writes about 300 bytes for a file.
const MAX_LEN: usize = 16 << 20;
/// Most bytes of a path, as on a phone.
pub(super) const MAX_PATH: usize = 1024;
/// Most levels of a list. The rules have four.
const MAX_DEPTH: usize = 16;

/// The requirement on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seal {
    pub(super) content: SealedContent,
    /// Whether the file may be missing, such as a removed language.
    pub(super) optional: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SealedContent {
    /// A file with this SHA-256.
    Sha256(Vec<u8>),
    /// A file with this SHA-1, as Xcode wrote before version 8.
    Sha1(Vec<u8>),
    /// Signed code or a code bundle, whose code directory has this hash.
    Code(Vec<u8>),
    /// A link to this path.
    Link(String),
}

/// The files in the list by their paths in the bundle. `None` if the list is malformed.
pub(super) fn parse(bytes: &[u8]) -> Option<BTreeMap<String, Seal>> {
    // Only XML: a few bytes of a binary list could describe an endless tree.
    (bytes.len() <= MAX_LEN && bytes.trim_ascii_start().starts_with(b"<")).then_some(())?;
    let mut list = PlistReader(Reader::new(Cursor::new(bytes)));
    let mut files = None;
    list.dictionary(|list, key| match key {
        "files2" => files.replace(list.files()?).is_none().then_some(()),
        _ => list.skip(),
    })?;
    files
}

struct PlistReader<'a>(Reader<Cursor<&'a [u8]>>);

impl PlistReader<'_> {
    fn next(&mut self) -> Option<Event<'static>> {
        self.0.next()?.ok()
    }

    /// Hands each key to `visit`, which reads the value.
    fn dictionary(&mut self, mut visit: impl FnMut(&mut Self, &str) -> Option<()>) -> Option<()> {
        matches!(self.next()?, Event::StartDictionary(_)).then_some(())?;
        self.rest_of_dictionary(&mut visit)
    }

    fn rest_of_dictionary(
        &mut self,
        visit: &mut impl FnMut(&mut Self, &str) -> Option<()>,
    ) -> Option<()> {
        loop {
            match self.next()? {
                Event::EndCollection => return Some(()),
                Event::String(key) => visit(self, &key)?,
                _ => return None,
            }
        }
    }

    fn files(&mut self) -> Option<BTreeMap<String, Seal>> {
        let mut files = BTreeMap::new();
        self.dictionary(|list, path| {
            (path.len() <= MAX_PATH).then_some(())?;
            let seal = list.seal()?;
            // Of two seals for a path, some readers take the first and others the last.
            files.insert(path.to_owned(), seal).is_none().then_some(())
        })?;
        Some(files)
    }

    fn seal(&mut self) -> Option<Seal> {
        match self.next()? {
            Event::Data(sha1) => {
                Some(Seal { content: SealedContent::Sha1(sha1.into_owned()), optional: false })
            }
            Event::StartDictionary(_) => self.rest_of_seal(),
            _ => None,
        }
    }

    fn rest_of_seal(&mut self) -> Option<Seal> {
        let (mut sha1, mut sha256, mut code, mut link) = (None, None, None, None);
        let mut optional = false;
        self.rest_of_dictionary(&mut |list: &mut Self, key: &str| {
            let place = match key {
                "hash" => &mut sha1,
                "hash2" => &mut sha256,
                "cdhash" => &mut code,
                "symlink" => {
                    let Event::String(target) = list.next()? else { return None };
                    return link.replace(target.into_owned()).is_none().then_some(());
                }
                "optional" => {
                    let Event::Boolean(value) = list.next()? else { return None };
                    optional = value;
                    return Some(());
                }
                _ => return list.skip(),
            };
            let Event::Data(hash) = list.next()? else { return None };
            place.replace(hash.into_owned()).is_none().then_some(())
        })?;
        let content = match (link, code, sha256, sha1) {
            (Some(target), None, None, None) => SealedContent::Link(target),
            (None, Some(hash), None, None) => SealedContent::Code(hash),
            (None, None, Some(hash), _) => SealedContent::Sha256(hash),
            (None, None, None, Some(hash)) => SealedContent::Sha1(hash),
            _ => return None,
        };
        Some(Seal { content, optional })
    }

    /// Skips one value.
    fn skip(&mut self) -> Option<()> {
        let mut depth: usize = 0;
        loop {
            match self.next()? {
                Event::StartArray(_) | Event::StartDictionary(_) => {
                    depth = depth.checked_add(1).filter(|depth| *depth <= MAX_DEPTH)?;
                }
                Event::EndCollection => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;

    fn list(files2: &str) -> Option<BTreeMap<String, Seal>> {
        parse(
            format!(
                "<?xml version='1.0'?><plist><dict><key>rules</key><dict/>{files2}</dict></plist>"
            )
            .as_bytes(),
        )
    }

    fn content(seal: &str) -> Option<SealedContent> {
        let files = list(&format!("<key>files2</key><dict><key>a</key>{seal}</dict>"))?;
        Some(files.get("a").unwrap().content.clone())
    }

    #[test]
    fn each_kind_of_seal_is_read() {
        let bytes = vec![1, 2, 3];
        let data = "<data>AQID</data>";
        for (seal, expected) in [
            (data.to_owned(), SealedContent::Sha1(bytes.clone())),
            (format!("<dict><key>hash</key>{data}</dict>"), SealedContent::Sha1(bytes.clone())),
            (
                format!("<dict><key>hash</key><data>AAAA</data><key>hash2</key>{data}</dict>"),
                SealedContent::Sha256(bytes.clone()),
            ),
            (
                format!(
                    "<dict><key>cdhash</key>{data}<key>requirement</key><string>x</string></dict>"
                ),
                SealedContent::Code(bytes.clone()),
            ),
            (
                "<dict><key>symlink</key><string>b</string></dict>".into(),
                SealedContent::Link("b".into()),
            ),
        ] {
            assert_eq!(content(&seal), Some(expected), "{seal}");
        }
        let optional = format!("<dict><key>hash2</key>{data}<key>optional</key><true/></dict>");
        let files = list(&format!("<key>files2</key><dict><key>a&amp;b</key>{optional}</dict>"));
        assert!(files.unwrap().get("a&b").unwrap().optional);
    }

    /// A signer can sign any list, so a signed list may be damaged.
    #[test]
    fn damaged_lists_are_read_without_panic() {
        let original = "<plist><dict><key>files2</key><dict><key>a</key><dict><key>hash2</key>\
            <data>AQID</data><key>optional</key><true/></dict><key>b</key><data>AQID</data>\
            </dict><key>rules2</key><dict><key>^.*</key><real>1</real></dict></dict></plist>";
        let mut random: u64 = 0x5eed;
        let mut below = |bound: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % bound
        };
        let mut read = 0;
        for _ in 0..20_000 {
            let mut bytes = original.as_bytes().to_vec();
            for _ in 0..=below(3) {
                let at = below(bytes.len());
                match below(3) {
                    0 => bytes.truncate(at.max(1)),
                    1 => drop(
                        bytes.splice(at..at, original.as_bytes().iter().copied().take(below(80))),
                    ),
                    _ => bytes.splice(at..=at, [below(256) as u8]).for_each(drop),
                }
            }
            read += usize::from(parse(&bytes).is_some());
        }
        assert!(read > 100, "{read}");
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_malformed() {
        let data = "<data>AQID</data>";
        let twice = format!("<key>a</key>{data}<key>a</key>{data}");
        assert_eq!(list(&format!("<key>files2</key><dict>{twice}</dict>")), None);
        assert_eq!(list("<key>files2</key><dict/><key>files2</key><dict/>"), None);
        assert_eq!(list("<key>files</key><dict/>"), None);
        assert_eq!(content("<dict/>"), None);
        assert_eq!(content("<string>AQID</string>"), None);
        let both = format!("<dict><key>hash2</key>{data}<key>cdhash</key>{data}</dict>");
        assert_eq!(content(&both), None);
        let deep = "<array>".repeat(100) + &"</array>".repeat(100);
        assert_eq!(list(&format!("<key>x</key>{deep}<key>files2</key><dict/>")), None);
        assert_eq!(parse(b"bplist00"), None);
    }
}
