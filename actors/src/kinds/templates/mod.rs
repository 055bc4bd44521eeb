//! Templates: the blueprints of instances, and the catalogue that comes with the service.

pub mod catalogue;
mod check;
mod handlers;
pub mod placeholder;
mod rules;

pub(crate) use handlers::sees_all;
pub use rules::{Command, TemplateClaim, TemplateIndex, Templates};
