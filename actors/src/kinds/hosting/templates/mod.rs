//! Templates: the blueprints of instances, and the catalogue that comes with the service.

pub mod catalogue;
pub(crate) mod check;
pub mod placeholder;
mod rules;

pub use rules::{Command, TemplateClaim, TemplateIndex, Templates};
