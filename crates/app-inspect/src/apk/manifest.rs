//! Reads the compiled `AndroidManifest.xml` of an apk.
//!
//! Source: `ResXMLTree_header` and its nodes in AOSP, ResourceTypes.h (see [`super::chunk`]).

use super::chunk::{Chunk, STRING_POOL, StringPool, Value};
use crate::cursor::Cursor;

const XML: u16 = 0x0003;
const START_ELEMENT: u16 = 0x0102;
const END_ELEMENT: u16 = 0x0103;
const RESOURCE_MAP: u16 = 0x0180;

/// Resource ids of attributes, `android.R.attr`. Attributes are found by id, as on Android, because
/// shrinkers drop their names.
const LABEL: u32 = 0x0101_0001;
const MIN_SDK_VERSION: u32 = 0x0101_020c;
const VERSION_CODE: u32 = 0x0101_021b;
const VERSION_NAME: u32 = 0x0101_021c;
const VERSION_CODE_MAJOR: u32 = 0x0101_0576;

const NO_INDEX: u32 = u32::MAX;

/// The attributes of the app in the manifest. References are not resolved.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    pub(super) package: Option<Value>,
    pub(super) version_name: Option<Value>,
    pub(super) version_code: Option<Value>,
    pub(super) version_code_major: Option<Value>,
    pub(super) label: Option<Value>,
    pub(super) min_sdk_version: Option<Value>,
}

impl Manifest {
    /// `None` if this is not a well-formed compiled manifest.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let document = Chunk::next(&mut Cursor::new(bytes)).filter(|chunk| chunk.kind == XML)?;
        let mut nodes = document.body()?;
        let pool = Chunk::next(&mut nodes).filter(|chunk| chunk.kind == STRING_POOL)?;
        let strings = StringPool::parse(pool)?;

        let mut manifest = Self::default();
        let mut attribute_ids: &[u8] = &[];
        let mut depth: u32 = 0;
        let mut seen_root = false;
        while !nodes.is_empty() {
            let node = Chunk::next(&mut nodes)?;
            match node.kind {
                RESOURCE_MAP => attribute_ids = node.body()?.rest(),
                START_ELEMENT => {
                    let element = Element::parse(node, strings, attribute_ids)?;
                    match depth {
                        0 => {
                            (!seen_root && element.name == "manifest").then_some(())?;
                            seen_root = true;
                            manifest.read_root(&element)?;
                        }
                        1 => manifest.read_child(&element)?,
                        _ => {}
                    }
                    depth = depth.checked_add(1)?;
                }
                END_ELEMENT => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        seen_root.then_some(manifest)
    }

    fn read_root(&mut self, root: &Element) -> Option<()> {
        self.package = root.attribute(|attribute| attribute.is_plain("package"))?;
        self.version_name = root.attribute(|attribute| attribute.id == Some(VERSION_NAME))?;
        self.version_code = root.attribute(|attribute| attribute.id == Some(VERSION_CODE))?;
        self.version_code_major =
            root.attribute(|attribute| attribute.id == Some(VERSION_CODE_MAJOR))?;
        Some(())
    }

    fn read_child(&mut self, element: &Element) -> Option<()> {
        let (field, id) = match element.name.as_str() {
            "application" => (&mut self.label, LABEL),
            "uses-sdk" => (&mut self.min_sdk_version, MIN_SDK_VERSION),
            _ => return Some(()),
        };
        if field.is_none() {
            *field = element.attribute(|attribute| attribute.id == Some(id))?;
        }
        Some(())
    }
}

struct Element<'a> {
    name: String,
    strings: StringPool<'a>,
    attribute_ids: &'a [u8],
    attributes: &'a [u8],
    attribute_len: usize,
}

struct Attribute<'a> {
    strings: StringPool<'a>,
    namespace: u32,
    name: u32,
    id: Option<u32>,
    data_type: u8,
    data: u32,
}

impl<'a> Element<'a> {
    fn parse(node: Chunk<'a>, strings: StringPool<'a>, attribute_ids: &'a [u8]) -> Option<Self> {
        let body = node.body()?;
        let mut fields = body;
        fields.take(4)?; // namespace
        let name = strings.get(fields.u32_le()?)?;
        let start = usize::from(fields.u16_le()?);
        let attribute_len = usize::from(fields.u16_le()?);
        let count = usize::from(fields.u16_le()?);
        let attributes = Cursor::at(body.rest(), start)?.take(count.checked_mul(attribute_len)?)?;
        Some(Self { name, strings, attribute_ids, attributes, attribute_len })
    }

    /// The value of the first attribute that `wanted` picks: `None` if the element is malformed,
    /// `Some(None)` if it has no such attribute.
    #[expect(clippy::option_option, reason = "malformed and absent differ, and both are usual")]
    fn attribute(&self, wanted: impl Fn(&Attribute) -> bool) -> Option<Option<Value>> {
        if self.attributes.is_empty() {
            return Some(None);
        }
        for bytes in self.attributes.chunks_exact(self.attribute_len) {
            let attribute = self.read(bytes)?;
            if wanted(&attribute) {
                return Value::new(attribute.data_type, attribute.data, &self.strings).map(Some);
            }
        }
        Some(None)
    }

    fn read(&self, bytes: &[u8]) -> Option<Attribute<'a>> {
        let mut fields = Cursor::new(bytes);
        let namespace = fields.u32_le()?;
        let name = fields.u32_le()?;
        fields.take(4)?; // the text in the source
        fields.take(3)?; // size of the value and a zero
        let (data_type, data) = (fields.u8()?, fields.u32_le()?);
        let slot = usize::try_from(name).ok()?.checked_mul(4)?;
        let id = Cursor::at(self.attribute_ids, slot).and_then(|mut id| id.u32_le());
        Some(Attribute { strings: self.strings, namespace, name, id, data_type, data })
    }
}

impl Attribute<'_> {
    /// Whether the attribute has this name and no namespace.
    fn is_plain(&self, name: &str) -> bool {
        self.namespace == NO_INDEX && self.strings.get(self.name).as_deref() == Some(name)
    }
}
