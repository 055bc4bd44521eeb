//! The functions of the family: what others hear of changes: webhooks and deliveries.

pub mod deliveries;
pub mod webhooks;
