//! Reads the `AndroidManifest.xml` of an aab: an `aapt.pb.XmlNode`.
//!
//! Source of all field numbers: AOSP, frameworks/base/tools/aapt2/Resources.proto.

use super::protobuf::Message;
use super::resources::{Item, children};

const ANDROID: &str = "http://schemas.android.com/apk/res/android";

/// The attributes of the app in the manifest. References are not resolved.
#[derive(Debug, Default)]
pub(super) struct Manifest<'a> {
    pub(super) package: Option<Item<'a>>,
    pub(super) version_name: Option<Item<'a>>,
    pub(super) version_code: Option<Item<'a>>,
    pub(super) version_code_major: Option<Item<'a>>,
    pub(super) label: Option<Item<'a>>,
    pub(super) min_sdk_version: Option<Item<'a>>,
}

impl<'a> Manifest<'a> {
    /// `None` if this is not a well-formed manifest.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut manifest = None;
        elements(Message::new(bytes), |root| {
            (manifest.is_none() && root.name == "manifest").then_some(())?;
            let mut parsed = Self {
                package: root.attribute("", "package")?,
                version_name: root.attribute(ANDROID, "versionName")?,
                version_code: root.attribute(ANDROID, "versionCode")?,
                version_code_major: root.attribute(ANDROID, "versionCodeMajor")?,
                ..Self::default()
            };
            children(root.message, 5, |node| {
                elements(node, |child| {
                    let (field, name) = match child.name {
                        "application" => (&mut parsed.label, "label"),
                        "uses-sdk" => (&mut parsed.min_sdk_version, "minSdkVersion"),
                        _ => return Some(()),
                    };
                    if field.is_none() {
                        *field = child.attribute(ANDROID, name)?;
                    }
                    Some(())
                })
            })?;
            manifest = Some(parsed);
            Some(())
        })?;
        manifest
    }
}

/// An `XmlElement`.
struct Element<'a> {
    name: &'a str,
    message: Message<'a>,
}

/// Hands the element of an `XmlNode` to `visit`. A text node has no element.
fn elements<'a>(node: Message<'a>, mut visit: impl FnMut(Element<'a>) -> Option<()>) -> Option<()> {
    children(node, 1, |message| {
        let mut name = "";
        message.each(|field| {
            if field.number == 3 {
                name = field.text()?;
            }
            Some(())
        })?;
        visit(Element { name, message })
    })
}

impl<'a> Element<'a> {
    /// The first attribute of this name: `None` if the element is malformed, `Some(None)` if it
    /// has no such attribute.
    #[expect(clippy::option_option, reason = "malformed and absent differ, and both are usual")]
    fn attribute(&self, namespace: &str, name: &str) -> Option<Option<Item<'a>>> {
        let mut found = None;
        children(self.message, 4, |attribute| {
            let attribute = Attribute::parse(attribute)?;
            if found.is_none() && attribute.namespace == namespace && attribute.name == name {
                found = Some(attribute.item.unwrap_or(Item::Text(attribute.source_text)));
            }
            Some(())
        })?;
        Some(found)
    }
}

/// An `XmlAttribute`.
#[derive(Default)]
struct Attribute<'a> {
    namespace: &'a str,
    name: &'a str,
    /// The value in the source, such as `@string/app_name`.
    source_text: &'a str,
    /// The compiled value, if there is one.
    item: Option<Item<'a>>,
}

impl<'a> Attribute<'a> {
    fn parse(message: Message<'a>) -> Option<Self> {
        let mut attribute = Self::default();
        message.each(|field| {
            match field.number {
                1 => attribute.namespace = field.text()?,
                2 => attribute.name = field.text()?,
                3 => attribute.source_text = field.text()?,
                6 => attribute.item = Some(Item::parse(field.message()?)?),
                _ => {}
            }
            Some(())
        })?;
        Some(attribute)
    }
}
