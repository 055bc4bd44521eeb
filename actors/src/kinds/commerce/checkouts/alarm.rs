//! Tells people that money arrived which is not settled, or is not what was to be paid.

use super::State;
use crate::kinds::{people::responsible::responsible, world::World};
use contract::{checkouts::Reference, money::Money};
use futures_util::future::join_all;
use std::time::Duration;

/// How long the mail server may take. Nobody is told twice because it does not answer for somebody
/// else.
const MAIL_WITHIN: Duration = Duration::from_secs(30);

/// Writes to the log, and to the owner and the admins of the organization. A mail that cannot be
/// sent does not stop anything: the log, the metric, the event and the list of unsettled checkouts
/// say the same.
pub(super) async fn raise(state: &State, reference: Reference, world: &World) {
    let problem = state.problem.as_ref().map_or("", |problem| problem.text.as_str());
    let state_of = state.state;
    tracing::error!(%reference, app = %state.app_id, state = ?state_of, problem, "paid money is not settled");
    let (app, people) = match responsible(world, state.app_id) {
        Ok(found) => found,
        Err(fault) => {
            tracing::warn!(%reference, %fault, "nobody was told of paid money that is not settled");
            return;
        }
    };
    let paid = state.payment.as_ref().and_then(|payment| payment.amount.as_ref());
    let paid = paid.map_or("an unknown sum".into(), Money::to_string);
    let subject = format!("{app}: a payment of {paid} is not settled");
    let order = state.order.as_ref().map(|order| format!("Order: {}\n", order.code));
    let text = format!(
        "The payment {reference} of {} ({paid}) arrived, and is not settled: {problem}.\n\n{}\
         The service tries again by itself, unless the sum is wrong. When the reason is mended, settle it at \
         once: svc call svc_settleCheckout --param reference={reference}\n",
        state.ordered.customer.email,
        order.unwrap_or_default(),
    );
    let mails = people.iter().map(async |email| {
        let sent = world.ports.mail.send(email, &subject, &text);
        let error = match world.ports.clock.limit(MAIL_WITHIN, sent).await {
            Some(Ok(())) => return,
            Some(Err(error)) => error.to_string(),
            None => "no answer of the mail server".into(),
        };
        tracing::warn!(%reference, %email, error, "the mail about an unsettled payment was not sent");
    });
    join_all(mails).await;
}
