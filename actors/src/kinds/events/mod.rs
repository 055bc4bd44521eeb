//! What others hear of changes: webhooks and deliveries.

pub mod deliveries;
pub mod webhooks;
