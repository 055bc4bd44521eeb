//! The functions about webhooks and deliveries.

pub mod deliveries;
pub mod webhooks;
