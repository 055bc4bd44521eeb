//! What a token may do.

use super::{
    api::{Api, RequestFailure},
    build::opened,
    documents::CHANNEL,
};
use crate::RemoteError;
use serde::Deserialize;
use serde_json::{Value, json};

/// A permission, and a request that the shop answers with `FORBIDDEN` without it. None of them
/// changes anything: no order has the id -1.
///
/// The list of permissions in `me` would be one request, but Vendure gives it to sessions only and
/// not to API keys, and it leaves the question which permission contains another one.
const PROBES: [(&str, &str); 6] = [
    ("ReadOrder", "query Probe { order(id: \"-1\") { id } }"),
    ("CreateOrder", "query Probe { eligibleShippingMethodsForDraftOrder(orderId: \"-1\") { id } }"),
    (
        "UpdateOrder",
        "mutation Probe { transitionOrderToState(id: \"-1\", state: \"Cancelled\") { __typename } }",
    ),
    ("DeleteOrder", "mutation Probe { deleteDraftOrder(orderId: \"-1\") { result } }"),
    ("ReadProduct", "query Probe { productVariants(options: {take: 1}) { totalItems } }"),
    ("ReadCustomer", "query Probe { customers(options: {take: 1}) { totalItems } }"),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChannelBody {
    active_channel: ChannelFound,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChannelFound {
    code: String,
    token: String,
    default_currency_code: String,
}

/// Returns what was found, as a sentence.
pub(super) async fn check(api: &Api<'_>) -> Result<String, RemoteError> {
    let found: ChannelBody = api.query(CHANNEL, json!({})).await?;
    let ChannelFound { code, token, default_currency_code: currency } = found.active_channel;
    opened(api, &token)?;
    super::summary::Scale::of(&currency, 2).map_err(RemoteError::Refused)?;
    let mut missing = Vec::new();
    for (permission, document) in PROBES {
        // Also the mutations may be sent again.
        match api.query::<Value>(document, json!({})).await {
            Err(RequestFailure::Refused(said)) if said.code == "FORBIDDEN" => {
                missing.push(permission)
            }
            Err(RequestFailure::Unanswered(e)) => return Err(e),
            // A shop whose ids have another form fails over this one, with the permission.
            Ok(_) | Err(RequestFailure::Refused(_) | RequestFailure::Broken(..)) => {}
        }
    }
    if !missing.is_empty() {
        return Err(RemoteError::Refused(format!(
            "The admin token opens the channel {code} without the permission{} {}.",
            if missing.len() > 1 { "s" } else { "" },
            missing.join(", ")
        )));
    }
    Ok(format!("The token opens the channel {code}, which sells in {currency}."))
}
