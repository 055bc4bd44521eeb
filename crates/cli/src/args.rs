//! The declarations of the command line, without behaviour.

mod builds;
mod deploy;
mod engines;
mod stores;
mod webhooks;

pub use builds::{
    BuildCommand, BuildsArgs, BuildsCommand, InitArgs, PublisherCommand, RepoCommand, RunnerArgs,
};
pub use clap_complete::Shell;
pub use deploy::DeployArgs;
pub use engines::{EngineCommand, EngineKeyArgs};
pub use stores::{CredentialCommand, NewCredential, Publication, ReleaseCommand, Rollout};
pub use webhooks::WebhookCommand;

use crate::values::{Expiry, FunctionName, one_of};
use clap::{Args, Subcommand};
use contract::{
    AppId, Channel, Email, Name, NewName, Notes, OrganizationId, ProjectId, ReleaseId, Scope,
    TokenId, VersionName, apps::Platform,
};
use std::path::PathBuf;

/// The options of every command.
#[derive(Debug, Clone, Default, Args)]
pub struct Global {
    /// Print only the reply, as JSON, on standard output
    #[arg(long, global = true)]
    pub json: bool,
    /// Print only this field of the reply, such as id; of a list, that of each item
    #[arg(long, global = true, value_name = "FIELD", conflicts_with = "json")]
    pub output: Option<String>,
    /// Print no notes and no progress
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// The address of the service [env: SVC_API_URL]
    #[arg(long, global = true, value_name = "URL")]
    pub api_url: Option<String>,
    /// The application id of the service [env: SVC_APPLICATION_ID]
    #[arg(long, global = true, value_name = "ID")]
    pub application_id: Option<String>,
    /// A deploy token, instead of signing in [env: SVC_TOKEN]
    #[arg(long, global = true)]
    pub token: Option<String>,
}

/// The commands that talk to a service.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create an account, and keep its session in the login file
    Register(RegisterArgs),
    /// Sign in, and keep the session in the login file
    Login(LoginArgs),
    /// End the session, and forget it
    Logout,
    /// Show who is signed in
    Whoami,
    /// Call a function of the service
    Call(CallArgs),
    /// Create projects
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Create apps
    #[command(subcommand)]
    App(AppCommand),
    /// List the projects you reach
    Projects,
    /// List the apps of the projects you reach
    Apps(AppsArgs),
    /// List the artifacts of an app
    Artifacts(Listing),
    /// List the releases of an app
    Releases(ReleasesArgs),
    /// Deploy the cloud code of a folder, or a folder with a Dockerfile
    Deploy(DeployArgs),
    /// Upload a file and make a release of it
    Publish(PublishArgs),
    /// Create, publish, roll out, roll back and delete releases
    #[command(subcommand)]
    Release(ReleaseCommand),
    /// Trigger, show and cancel builds
    #[command(subcommand)]
    Build(BuildCommand),
    /// List the builds of an app, and read their logs
    Builds(BuildsArgs),
    /// Execute builds on this machine, until it is stopped
    Runner(RunnerArgs),
    /// Open the install page of a release in a browser
    Open(OpenArgs),
    /// Add, list, drain and remove container engines, as an operator
    #[command(subcommand)]
    Engine(EngineCommand),
    /// Create, list and revoke deploy tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Store, check and delete what signs an app and opens its stores
    #[command(subcommand)]
    Credential(CredentialCommand),
    /// Connect the repository of an app, and check it on the service
    #[command(subcommand)]
    Repo(RepoCommand),
    /// Trust CI workflows to upload without a stored secret
    #[command(subcommand)]
    Publisher(PublisherCommand),
    /// Send the events of an organization to an address
    #[command(subcommand)]
    Webhook(WebhookCommand),
    /// Show operators the state of the service, and what needs attention, until q is pressed
    Top(TopArgs),
    /// Write the files that let an app be built in its own repository
    Init(InitArgs),
    /// Check this repository, the service and the sign-in
    Doctor,
}

/// `svc register`.
#[derive(Debug, Args)]
pub struct RegisterArgs {
    #[command(flatten)]
    pub login: LoginArgs,
    /// Your name, as others see it
    #[arg(long)]
    pub name: Option<NewName>,
    /// The token of an invitation for this e-mail, where people register by invitation only
    #[arg(long)]
    pub invitation: Option<String>,
}

/// `svc top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Print the state once, and end
    #[arg(long)]
    pub once: bool,
}

/// `svc project`.
#[derive(Debug, Subcommand)]
pub enum ProjectCommand {
    /// Create a project
    Create {
        /// The name that people see
        name: NewName,
        /// The organization of the project; by default your personal one
        #[arg(long)]
        organization: Option<OrganizationId>,
    },
}

/// `svc app`.
#[derive(Debug, Subcommand)]
pub enum AppCommand {
    /// Create an app in a project
    Create {
        /// The name that people see
        name: NewName,
        /// The id of the project (prj_…)
        #[arg(long)]
        project: ProjectId,
        /// A platform of the app; by default both
        #[arg(long, value_delimiter = ',', value_parser = one_of::<Platform>())]
        platform: Vec<Platform>,
    },
}

/// `svc login`.
#[derive(Debug, Args)]
pub struct LoginArgs {
    /// The e-mail of the account; asked for if not given
    #[arg(long)]
    pub email: Option<Email>,
    /// Read the password from standard input instead of asking for it
    #[arg(long)]
    pub password_stdin: bool,
}

/// `svc call`.
#[derive(Debug, Args)]
pub struct CallArgs {
    /// The name of the function
    #[arg(value_parser = FunctionName, hide_possible_values = true)]
    pub function: String,
    /// A parameter; lists are repeated or separated by commas, `null` clears
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub param: Vec<String>,
    /// All parameters as a JSON object; - reads it from standard input
    #[arg(value_name = "JSON", conflicts_with = "param")]
    pub body: Option<String>,
    /// Read the master key of the service from standard input, and call with it [env: SVC_MASTER_KEY]
    #[arg(long)]
    pub master_key_stdin: bool,
}

/// `svc apps`.
#[derive(Debug, Args)]
pub struct AppsArgs {
    /// List only the apps of this project
    #[arg(long)]
    pub project: Option<ProjectId>,
}

/// `svc artifacts`, and the list of `svc builds`.
#[derive(Debug, Args)]
pub struct Listing {
    /// The app [env: SVC_APP_ID]
    #[arg(long)]
    pub app: Option<AppId>,
    /// List only those for this platform
    #[arg(long, value_parser = one_of::<Platform>())]
    pub platform: Option<Platform>,
    /// List all, not only the newest
    #[arg(long)]
    pub all: bool,
}

/// `svc releases`.
#[derive(Debug, Args)]
pub struct ReleasesArgs {
    /// The app [env: SVC_APP_ID]
    #[arg(long)]
    pub app: Option<AppId>,
    /// List only the releases of this channel
    #[arg(long)]
    pub channel: Option<Channel>,
    /// List all releases, not only the newest
    #[arg(long)]
    pub all: bool,
}

/// `svc publish`.
#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
pub struct PublishArgs {
    /// The .ipa, .apk or .aab; if not given, it is built as .svc/config.json says
    pub file: Option<PathBuf>,
    /// The app [env: SVC_APP_ID]
    #[arg(long)]
    pub app: Option<AppId>,
    /// The version in the file; needed only if the file has none
    #[arg(long)]
    pub version: Option<VersionName>,
    /// The channel of the release
    #[arg(long, default_value = "production")]
    pub channel: Channel,
    /// Publish the release to its install page at once
    #[arg(long)]
    pub auto_publish: bool,
    /// The platform to build for; needed if .svc/config.json names more than one
    #[arg(long, value_parser = one_of::<Platform>())]
    pub platform: Option<Platform>,
    /// The build profile
    #[arg(long, default_value = "production")]
    pub profile: Name,
    /// A file with the attestation of the build, a Sigstore bundle
    #[arg(long, value_name = "FILE")]
    pub attestation: Option<PathBuf>,
    /// Release notes
    #[arg(long)]
    pub notes: Option<Notes>,
}

/// `svc open`.
#[derive(Debug, Args)]
pub struct OpenArgs {
    /// The release; by default the published one of the channel
    pub release: Option<ReleaseId>,
    /// The app [env: SVC_APP_ID]
    #[arg(long)]
    pub app: Option<AppId>,
    /// The channel, such as production
    #[arg(long, default_value = "production")]
    pub channel: Channel,
}

/// `svc token`.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a deploy token; it is shown only once
    Create {
        /// What the token is for
        #[arg(long)]
        name: NewName,
        /// A scope of the token; repeat it for each
        #[arg(long, required = true, value_delimiter = ',', value_parser = one_of::<Scope>())]
        scope: Vec<Scope>,
        /// Bind it to this app
        #[arg(long)]
        app: Option<AppId>,
        /// When the token ends: a time, a duration from now such as 12h, or never; by default in 90d
        #[arg(long)]
        expires: Option<Expiry>,
    },
    /// List your own deploy tokens, or the tokens of an app
    List {
        /// The id of the app (app_…)
        #[arg(long)]
        app: Option<AppId>,
        /// List all tokens, not only the newest
        #[arg(long)]
        all: bool,
    },
    /// End a deploy token
    Revoke {
        /// The id of the token, as in `svc token list`
        #[arg(value_name = "TOKEN")]
        id: TokenId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};
    use contract::releases::Target;

    #[derive(Debug, Parser)]
    #[command(name = "svc", version = "0")]
    struct Svc {
        #[command(flatten)]
        global: Global,
        #[command(subcommand)]
        command: Command,
    }

    fn parse(line: &str) -> Result<Svc, clap::Error> {
        Svc::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_declarations_agree_with_each_other() {
        Svc::command().debug_assert();
    }

    #[test]
    fn json_is_a_flag_everywhere_and_the_body_of_a_call_may_follow_it() {
        let svc = parse("svc call getApp --json -").unwrap();
        let Command::Call(call) = svc.command else { panic!("not a call") };
        assert!(svc.global.json);
        assert_eq!(call.body.as_deref(), Some("-"));
        assert!(parse("svc apps --json").unwrap().global.json);
        assert!(parse("svc call getApp --param appId=x {}").is_err());
    }

    #[test]
    fn names_of_the_wire_are_taken_and_others_are_not() {
        let release = "rel_01J9ZQ8F5W7V3T6M2K4N8R0P1S";
        let svc =
            parse(&format!("svc release publish {release} --target ota,google-play")).unwrap();
        let Command::Release(ReleaseCommand::Publish(publication)) = svc.command else {
            panic!("not a publication")
        };
        assert_eq!(publication.target, [Target::Ota, Target::GooglePlay]);
        assert!(parse(&format!("svc release publish {release} --target moon")).is_err());
        assert!(parse("svc token create --name ci --scope artifact:upload").is_ok());
        assert!(parse("svc token create --name ci").is_err());
    }

    #[test]
    fn a_rollout_is_a_share_or_a_word() {
        let release = "rel_01J9ZQ8F5W7V3T6M2K4N8R0P1S";
        let rollout = |text: &str| match parse(&format!("svc release rollout {release} {text}")) {
            Ok(Svc { command: Command::Release(ReleaseCommand::Rollout { to, .. }), .. }) => {
                Some(to)
            }
            _ => None,
        };
        assert_eq!(rollout("12.5%"), Some(Rollout::To(12.5.try_into().unwrap())));
        assert_eq!(rollout("all"), Some(Rollout::To(100.0.try_into().unwrap())));
        assert_eq!(rollout("halt"), Some(Rollout::Halt));
        assert_eq!(rollout("resume"), Some(Rollout::Resume));
        for wrong in ["0", "101", "stop", "-5"] {
            assert_eq!(rollout(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_version_is_an_option_of_publish() {
        let svc = parse("svc publish app.apk --version 1.2.3 --auto-publish").unwrap();
        let Command::Publish(publish) = svc.command else { panic!("not publish") };
        assert_eq!(publish.version.unwrap().as_str(), "1.2.3");
        assert_eq!(publish.channel.as_str(), "production");
    }
}
