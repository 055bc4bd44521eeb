//! The options of `svc deploy`.

use crate::values::one_of;
use clap::Args;
use contract::{
    AppId,
    deployments::DeploymentTarget,
    text::{EnvName, EnvValue},
};
use std::path::PathBuf;

/// `svc deploy`.
#[derive(Debug, Args)]
pub struct DeployArgs {
    /// The folder with cloud/main.js or with a Dockerfile; by default the current one
    pub folder: Option<PathBuf>,
    /// The app [env: SVC_APP_ID]
    #[arg(long)]
    pub app: Option<AppId>,
    /// The service to replace; needed only if the app has two instances
    #[arg(long, value_parser = one_of::<DeploymentTarget>())]
    pub target: Option<DeploymentTarget>,
    /// An argument of the Dockerfile; everybody with the image can read it
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub build_arg: Vec<(EnvName, EnvValue)>,
    /// A variable of the service that the Dockerfile reads with RUN --mount=type=secret,id=NAME
    #[arg(long, value_name = "NAME")]
    pub build_secret: Vec<EnvName>,
    /// Do not wait until it serves
    #[arg(long, short)]
    pub detach: bool,
}

fn variable(text: &str) -> Result<(EnvName, EnvValue), String> {
    let (name, value) = text.split_once('=').ok_or("must be such as NAME=value")?;
    Ok((name.parse()?, value.parse()?))
}
