//! What the service sends to people and programs.

use super::parse_host_and_port;
use clap::Args;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Mail and webhooks")]
pub struct MessageArgs {
    /// The mail server, such as smtps://user:password@mail.example.com. Without one, the service
    /// writes each mail to its log.
    #[arg(long, env = "SVC_MAIL_URL", hide_env_values = true)]
    pub mail_url: Option<String>,
    /// The sender address of mail.
    #[arg(long, env = "SVC_MAIL_FROM", default_value = "svc@localhost")]
    pub mail_from: String,
    /// Receivers of webhooks that may lie on the internal network, such as hooks.example.com:8443,
    /// separated by commas. They may be reached over http. All others must be on the public internet.
    #[arg(
        long,
        env = "SVC_WEBHOOK_PRIVATE_HOSTS",
        value_delimiter = ',',
        value_parser = parse_host_and_port
    )]
    pub webhook_private_hosts: Vec<(String, u16)>,
}
