//! The handlers of the group Repositories.

pub mod push;

use self::push::webhook_secret;
use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        delivery::repositories::{
            Checking, Command, DeployKey, HostTrust, Repositories, Repository, Source,
            lookup::connected,
        },
        world::World,
    },
    runtime::{
        resource::{Input, Row},
        store::Keyed,
    },
};
use contract::{
    AppId, Fault, RepositoryId, Serves,
    repositories::{
        self as wire, CheckRepository, ConnectRepository, DisconnectRepository,
        DisconnectedRepository, GetRepository, GetRepositoryWebhook, RepositoryHost,
        RepositoryWebhook, RunsIn,
    },
};
use std::time::Duration;

/// How long a call waits for a check.
const CHECK_WITHIN: Duration = Duration::from_secs(20);

/// The repository of an app as its members see it; `None` if none is connected.
pub(crate) fn repository_of_app(
    world: &World,
    app: AppId,
) -> Result<Option<wire::Repository>, Fault> {
    Ok(connected(&world.store, app)?.map(|(_, repository)| view(world, &repository)))
}

/// Where a build of the branch runs that names no labels. `None` until a check has read the repository.
pub(crate) fn runs_in(world: &World, repository: &Repository) -> Option<RunsIn> {
    let checked = repository.checked.as_ref()?;
    Some(match checked.runs_in_own_ci() {
        true => RunsIn::ClientCi,
        false if may_use_central(world, repository) => RunsIn::CentralCi,
        false => RunsIn::Runner,
    })
}

/// Whether the CI of the operator's repository may build it. No job there gets a deploy key.
pub(crate) fn may_use_central(world: &World, repository: &Repository) -> bool {
    let central = world.ports.ci.as_ref().and_then(|ci| ci.central());
    central.is_some() && repository.source.url.ssh().is_none()
}

fn view(world: &World, repository: &Repository) -> wire::Repository {
    let runs_in = runs_in(world, repository);
    let Repository { app_id, source, checking, checked, error } = repository.clone();
    let (url, branch) = (source.url, source.branch.map(|branch| branch.as_str().to_owned()));
    let installation_id = checked.as_ref().and_then(|checked| checked.installation.clone());
    let host_key = source.deploy_key.as_ref().and_then(|key| match &key.host {
        HostTrust::Pinned(known) => Some(known.fingerprint()),
        HostTrust::FirstUse | HostTrust::Expected(_) => None,
    });
    let shown = wire::Repository {
        app_id,
        host: match installation_id {
            Some(_) => RepositoryHost::Github,
            None => RepositoryHost::of(&url),
        },
        url,
        branch,
        has_token: source.token.is_some(),
        deploy_key: source.deploy_key.map(|key| key.public),
        host_key,
        installation_id,
        mode: wire::RepositoryMode::Unclassified,
        runs_in,
        detected: vec![],
        findings: vec![],
        commit: None,
        checked_at: None,
        checking: checking != Checking::No,
        error,
    };
    let Some(checked) = checked else { return shown };
    wire::Repository {
        branch: Some(checked.branch),
        mode: checked.mode,
        detected: checked.detected,
        findings: checked.findings,
        commit: Some(checked.commit),
        checked_at: Some(checked.at),
        ..shown
    }
}

/// Refuses what does not fit the kind of address.
fn consistent(p: &ConnectRepository) -> Result<(), Fault> {
    const NOT_OVER_SSH: &str =
        "is for https addresses: an ssh address is read with a deploy key, which svc makes";
    match p.url.ssh() {
        Some(_) if p.token.is_some() => Err(Fault::invalid("token", NOT_OVER_SSH)),
        Some(_) if p.installation_id.is_some() => {
            Err(Fault::invalid("installationId", NOT_OVER_SSH))
        }
        _ if p.url.names_port_zero() => {
            Err(Fault::invalid("url", "names the port 0, at which no server listens"))
        }
        None if p.host_key.is_some() => Err(Fault::invalid("hostKey", "is for ssh addresses")),
        _ => Ok(()),
    }
}

fn repository(world: &World, app: AppId) -> Result<Keyed<Repositories>, Fault> {
    connected(&world.store, app)?.ok_or(Fault::NotFound(Repositories::NOUN))
}

/// The source that a call names. An ssh address gets a new key pair, which is not used if the
/// address has one.
fn source(world: &World, p: &ConnectRepository) -> Result<Source, Fault> {
    consistent(p)?;
    let ports = &world.ports;
    let owner = p.app_id.to_string();
    let seal = |secret: &str| ports.sealer.seal(&owner, secret).map_err(|_| Fault::Internal);
    let deploy_key = match p.url.ssh() {
        None => None,
        Some(_) => {
            let pair = ports.sources.new_key_pair(&format!("svc {owner}"));
            let pair = pair.map_err(|_| Fault::Internal)?;
            let expected = p.host_key.clone();
            Some(DeployKey {
                public: pair.public,
                private: seal(pair.private.as_str())?,
                host: expected.map_or(HostTrust::FirstUse, HostTrust::Expected),
            })
        }
    };
    Ok(Source {
        url: p.url.clone(),
        branch: p.branch.clone(),
        token: p.token.as_ref().map(|token| seal(token.as_str())).transpose()?,
        installation: p.installation_id.clone(),
        deploy_key,
    })
}

/// The repository after a new check, or while it runs if it takes too long.
pub(crate) async fn repository_checked_now(
    world: &World,
    id: RepositoryId,
) -> Result<Repository, Fault> {
    world.to::<Repositories>(id).ask(Command::Check).await?;
    let checked = world.to::<Repositories>(id).idle_or_late(CHECK_WITHIN).await?;
    Ok((*checked).clone())
}

impl Serves<ConnectRepository> for Platform {
    async fn serve(&self, cx: &Call, p: ConnectRepository) -> Result<wire::Repository, Fault> {
        let source = source(&self.world, &p)?;
        let (id, input) = match connected(&self.world.store, p.app_id)? {
            Some((id, _)) => (id, Input::Command(Command::Connect(source))),
            None => {
                let new = Box::new(Repository::new(p.app_id, source));
                (self.world.ports.random.id(cx.now), Input::Create(new))
            }
        };
        let world = self.world.clone();
        let show = move |repository: &Repository| Ok(view(&world, repository));
        let repository = cx.to::<Repositories>(id);
        let begun = repository.change_or_create(input, show.clone()).await?;
        repository.when_idle(CHECK_WITHIN, begun, show).await
    }
}

impl Serves<GetRepository> for Platform {
    async fn serve(&self, _: &Call, p: GetRepository) -> Result<wire::Repository, Fault> {
        let (_, repository) = repository(&self.world, p.app_id)?;
        Ok(view(&self.world, &repository))
    }
}

impl Serves<GetRepositoryWebhook> for Platform {
    async fn serve(&self, cx: &Call, p: GetRepositoryWebhook) -> Result<RepositoryWebhook, Fault> {
        let (id, _) = repository(&self.world, p.app_id)?;
        cx.record(&id.to_string()).await?;
        let url = format!("{}/api/v1/repositories/{}/push", self.settings.api_url, p.app_id);
        Ok(RepositoryWebhook { url, secret: webhook_secret(self, id) })
    }
}

impl Serves<CheckRepository> for Platform {
    async fn serve(&self, cx: &Call, p: CheckRepository) -> Result<wire::Repository, Fault> {
        let (id, _) = repository(&self.world, p.app_id)?;
        let world = self.world.clone();
        let show = move |repository: &Repository| Ok(view(&world, repository));
        cx.to::<Repositories>(id).change_and_wait(Command::Check, CHECK_WITHIN, show).await
    }
}

impl Serves<DisconnectRepository> for Platform {
    async fn serve(
        &self,
        cx: &Call,
        p: DisconnectRepository,
    ) -> Result<DisconnectedRepository, Fault> {
        let (id, _) = repository(&self.world, p.app_id)?;
        let reply =
            |repository: &Repository| Ok(DisconnectedRepository { deleted: repository.app_id });
        cx.to::<Repositories>(id).change(Command::Disconnect, reply).await
    }
}
