//! Containers, and the images that they run.

use super::parse_host_and_port;
use clap::{Args, ValueEnum, builder::TypedValueParser};
use contract::{
    OrganizationId, WebUrl,
    text::{ImageRepository, Slug},
};
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Instances")]
pub struct HostingArgs {
    /// The container engine, such as unix:///var/run/docker.sock. The default is the local engine.
    #[arg(long, env = "SVC_DOCKER_HOST")]
    pub docker_host: Option<String>,
    /// Image repositories and their mirrors, such as postgres=registry.example.com/postgres,
    /// separated by commas. The service pulls from the mirror.
    #[arg(long, env = "SVC_IMAGE_MIRRORS", value_delimiter = ',', value_parser = parse_mirror)]
    pub image_mirrors: Vec<(String, String)>,
    /// A file with logins for image registries, in the format that `docker login` writes.
    #[arg(long, env = "SVC_REGISTRY_LOGINS")]
    pub registry_logins: Option<PathBuf>,
    /// The image that the shipped recipes of images build upon: Node 22 or later with npm. It is
    /// pulled without a login if it is not on the machine of the container engine.
    #[arg(long, env = "SVC_RECIPE_BASE_IMAGE", default_value = "node:22-slim")]
    pub recipe_base_image: String,
    /// The npm registry of the shipped recipes, such as `https://npm.example.com`. The default is
    /// npm's own. The history of the images shows it, so it must not contain a password.
    #[arg(long, env = "SVC_RECIPE_NPM_REGISTRY")]
    pub recipe_npm_registry: Option<WebUrl>,
    /// The slug of the template for backends that are created without a template.
    #[arg(long, env = "SVC_BACKEND_TEMPLATE", default_value = "parse-server-postgresql")]
    pub backend_template: Slug,
    /// The slug of the template for market servers that are created without a template.
    #[arg(long, env = "SVC_MARKET_TEMPLATE", default_value = "vendure")]
    pub market_template: Slug,
    /// How long a deployment may take from its turn until it serves, in seconds.
    #[arg(long, env = "SVC_DEPLOYMENT_LIMIT", default_value_t = 1800, value_parser = seconds())]
    pub deployment_limit: u32,
    /// How long a build of a container image may take from its turn, in seconds.
    #[arg(long, env = "SVC_IMAGE_BUILD_LIMIT", default_value_t = 7200, value_parser = seconds())]
    pub image_build_limit: u32,
    /// How many times the memory of the machine may be promised to instances, from 0.1 to 100. The memory
    /// limits of all instances count, also of stopped ones.
    #[arg(long, env = "SVC_MEMORY_OVERCOMMIT", default_value_t = 2.0, value_parser = parse_overcommit)]
    pub memory_overcommit: f64,
    /// How many times the processors of the machine may be promised to instances, from 0.1 to 100.
    #[arg(long, env = "SVC_CPU_OVERCOMMIT", default_value_t = 16.0, value_parser = parse_overcommit)]
    pub cpu_overcommit: f64,
    /// What instances reach. `public`: public addresses, but no port 25. `all`: whatever this machine reaches,
    /// unless rules that you made yourself keep them from it.
    #[arg(long, env = "SVC_INSTANCE_EGRESS", value_enum, default_value = "public")]
    pub instance_egress: InstanceEgress,
    /// Hosts that all instances reach although they are on the internal network, such as
    /// mail.example.com:587, separated by commas. The default port is 443.
    #[arg(
        long,
        env = "SVC_INSTANCE_PRIVATE_HOSTS",
        value_delimiter = ',',
        value_parser = parse_host_and_port
    )]
    pub instance_private_hosts: Vec<(String, u16)>,
    /// Hosts that the instances and the isolated builds of one organization reach although they are on the
    /// internal network, such as org_01K4R8Z3V7Q2M5N6P9T0W1X2Y3=db.example.com:5432, separated by commas. The
    /// default port is 443.
    #[arg(
        long,
        env = "SVC_ORGANIZATION_PRIVATE_HOSTS",
        value_delimiter = ',',
        value_parser = parse_host_of_organization
    )]
    pub organization_private_hosts: Vec<(OrganizationId, (String, u16))>,
    /// The interval between two checks of all instances, in seconds.
    #[arg(long, env = "SVC_WATCH_INTERVAL", default_value_t = 10)]
    pub watch_interval: u64,
}

/// What instances reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InstanceEgress {
    /// Public addresses.
    Public,
    /// Whatever this machine reaches.
    All,
}

/// From a second to a week.
fn seconds() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=7 * 24 * 3600)
}

fn parse_overcommit(text: &str) -> Result<f64, String> {
    let times = text.parse().ok().filter(|times| (0.1..=100.0).contains(times));
    times.ok_or_else(|| "must be a number from 0.1 to 100, such as 1.5".to_owned())
}

fn parse_host_of_organization(text: &str) -> Result<(OrganizationId, (String, u16)), String> {
    let parsed =
        text.split_once('=').and_then(|(id, host)| Some((id.trim().parse().ok()?, host.trim())));
    let (organization, host) = parsed.ok_or_else(|| {
        format!(
            "{text} must be the id of an organization and a host, such as org_…=db.example.com:5432"
        )
    })?;
    Ok((organization, parse_host_and_port(host)?))
}

fn parse_mirror(text: &str) -> Result<(String, String), String> {
    let (of, instead) =
        text.split_once('=').ok_or("must be such as postgres=registry.example.com/postgres")?;
    let repository = |text: &str| text.parse::<ImageRepository>().map(String::from);
    Ok((repository(of)?, repository(instead)?))
}
