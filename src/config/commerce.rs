//! Payment providers and shops.

use super::{parse_host_and_port, parse_tier};
use clap::Args;
use contract::{AppId, authentication::Tier, text::PlanCode};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Payments and shops")]
pub struct CommerceArgs {
    /// The address of Paystack.
    #[arg(long, env = "SVC_PAYSTACK_URL", default_value = payments::paystack::ADDRESS)]
    pub paystack_url: String,
    /// The address of Stripe.
    #[arg(long, env = "SVC_STRIPE_URL", default_value = payments::stripe::ADDRESS)]
    pub stripe_url: String,
    /// The app to whose plans people subscribe for a higher tier on this service.
    #[arg(long, env = "SVC_PLATFORM_APP", requires = "platform_plans")]
    pub platform_app: Option<AppId>,
    /// The tiers that plans of that app give, such as `PLN_abc=developer,PLN_def=professional`.
    #[arg(
        long,
        env = "SVC_PLATFORM_PLANS",
        value_delimiter = ',',
        value_parser = parse_plan,
        requires = "platform_app"
    )]
    pub platform_plans: Vec<(PlanCode, Tier)>,
    /// Hosts of shops that may be on the internal network, with their ports, separated by commas, such
    /// as `shop.internal:3000`.
    #[arg(
        long,
        env = "SVC_SHOP_PRIVATE_HOSTS",
        value_delimiter = ',',
        value_parser = parse_host_and_port
    )]
    pub shop_private_hosts: Vec<(String, u16)>,
}

fn parse_plan(text: &str) -> Result<(PlanCode, Tier), String> {
    let (plan, tier) = text.split_once('=').ok_or("must be such as PLN_abc=developer")?;
    Ok((plan.parse()?, parse_tier(tier)?))
}
