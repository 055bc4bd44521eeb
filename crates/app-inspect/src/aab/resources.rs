//! Values of attributes and resources, and the `resources.pb` of an aab.
//!
//! Source of all field numbers: AOSP, frameworks/base/tools/aapt2/Resources.proto.

use super::protobuf::{Field, Message};

/// Most references in a chain. The limit ends a cycle.
const MAX_REFERENCES: usize = 20;

/// An `aapt.pb.Item`, with the kinds that this crate reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Text(&'a str),
    Integer(u32),
    /// The id of a resource.
    Reference(u32),
    Other,
}

impl<'a> Item<'a> {
    pub(super) fn parse(item: Message<'a>) -> Option<Self> {
        let mut parsed = Self::Other;
        item.each(|field| {
            parsed = match field.number {
                1 => Self::Reference(find_uint32(field.message()?, 2)?.unwrap_or(0)),
                // String, RawString and StyledString all start with their text.
                2..=4 => Self::Text(find_text(field.message()?, 1)?.unwrap_or_default()),
                7 => Self::primitive(field.message()?)?,
                _ => return Some(()),
            };
            Some(())
        })?;
        Some(parsed)
    }

    /// `int_decimal_value` or `int_hexadecimal_value` of a `Primitive`.
    fn primitive(primitive: Message) -> Option<Self> {
        let mut parsed = Self::Other;
        primitive.each(|field| {
            if matches!(field.number, 6 | 7) {
                parsed = Self::Integer(field.uint32()?);
            }
            Some(())
        })?;
        Some(parsed)
    }

    /// The text that Android shows for the item.
    pub(super) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.to_owned()),
            Self::Integer(number) => Some(number.cast_signed().to_string()),
            Self::Reference(_) | Self::Other => None,
        }
    }
}

/// A `ResourceTable`, in its encoded form.
#[derive(Clone, Copy)]
pub(super) struct ResourceTable<'a>(pub(super) &'a [u8]);

impl<'a> ResourceTable<'a> {
    /// Follows references to another kind of item. `None` if there is none.
    pub(super) fn resolve(self, mut item: Item<'a>) -> Option<Item<'a>> {
        for _ in 0..MAX_REFERENCES {
            let Item::Reference(id) = item else { return Some(item) };
            item = self.find(id)?;
        }
        None
    }

    /// The value of a resource in the default configuration, else in the first with a value.
    fn find(self, id: u32) -> Option<Item<'a>> {
        let [package_id, type_id, entry_high, entry_low] = id.to_be_bytes();
        let entry_id = u16::from_be_bytes([entry_high, entry_low]);
        let mut values = Values::default();
        children(Message::new(self.0), 2, |package| {
            if nested_id(package, 1)? != u32::from(package_id) {
                return Some(());
            }
            children(package, 3, |resource_type| {
                if nested_id(resource_type, 1)? != u32::from(type_id) {
                    return Some(());
                }
                children(resource_type, 3, |entry| {
                    if nested_id(entry, 1)? != u32::from(entry_id) {
                        return Some(());
                    }
                    children(entry, 6, |config_value| values.add(config_value))
                })
            })
        })?;
        values.default.or(values.first)
    }
}

#[derive(Default)]
struct Values<'a> {
    default: Option<Item<'a>>,
    first: Option<Item<'a>>,
}

impl<'a> Values<'a> {
    /// `config_value` is a `ConfigValue`. A default configuration is an empty message.
    fn add(&mut self, config_value: Message<'a>) -> Option<()> {
        let mut is_default = true;
        let mut item = None;
        config_value.each(|field| {
            match field.number {
                1 => is_default = field.message()?.next()?.is_none(),
                2 => children(field.message()?, 4, |value| {
                    item = Some(Item::parse(value)?);
                    Some(())
                })?,
                _ => {}
            }
            Some(())
        })?;
        let Some(item) = item else { return Some(()) };
        self.first.get_or_insert(item);
        if is_default {
            self.default.get_or_insert(item);
        }
        Some(())
    }
}

/// Hands every message in the field `number` to `visit`.
pub(super) fn children<'a>(
    message: Message<'a>,
    number: u64,
    mut visit: impl FnMut(Message<'a>) -> Option<()>,
) -> Option<()> {
    message.each(|field| if field.number == number { visit(field.message()?) } else { Some(()) })
}

/// `PackageId`, `TypeId` and `EntryId` are messages around a number, and omit zero.
fn nested_id(message: Message, number: u64) -> Option<u32> {
    let mut id = 0;
    children(message, number, |nested| {
        id = find_uint32(nested, 1)?.unwrap_or(0);
        Some(())
    })?;
    Some(id)
}

#[expect(clippy::option_option, reason = "malformed and absent differ")]
fn find_uint32(message: Message, number: u64) -> Option<Option<u32>> {
    find(message, number)?.map_or(Some(None), |field| field.uint32().map(Some))
}

#[expect(clippy::option_option, reason = "malformed and absent differ")]
fn find_text<'a>(message: Message<'a>, number: u64) -> Option<Option<&'a str>> {
    find(message, number)?.map_or(Some(None), |field| field.text().map(Some))
}

/// The last field with this number, which counts if a singular field is repeated.
#[expect(clippy::option_option, reason = "malformed and absent differ")]
fn find<'a>(message: Message<'a>, number: u64) -> Option<Option<Field<'a>>> {
    let mut found = None;
    message.each(|field| {
        if field.number == number {
            found = Some(field);
        }
        Some(())
    })?;
    Some(found)
}
