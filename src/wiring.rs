//! Builds the platform and its adapters from the configuration.

mod engine;
mod files;

use crate::{
    adapters::{
        acme::{Acme, Proofs},
        attestations::TrustedRoots,
        binaries::{SEGMENT, Vault},
        clock,
        credential_files::CredentialOpener,
        domain_records::NameServers,
        dumps::DumpFolder,
        egress::Ways,
        engines::DockerEngines,
        folders::FolderStore,
        git::Git,
        github::GithubApp,
        machine::ThisMachine,
        mail::mail,
        oidc::Issuers,
        parse::ParseClient,
        passwords::Argon2id,
        receivers::HttpReceivers,
        recipes, registries,
        servers::Servers,
    },
    config::{ServeArgs, app_stores::AppStoreArgs, builds::BuildArgs, commerce::CommerceArgs},
    database,
    secrets::{self, Keys},
};
use actix_rt::ArbiterHandle;
use actors::{
    call::platform::{DefaultTemplates, Platform, Settings},
    installation::{Installation, This},
    kinds::{
        delivery::artifacts::MOST_SEGMENTS,
        hosting::templates::catalogue::Catalogue,
        people::accounts::{AccountClaim, Accounts},
    },
    ports::{
        Ports,
        certificate_authority::CertificateAuthority,
        ci::{Central, Ci},
        random::Random,
        sealed::Sealer,
        site::{Overcommit, Site},
    },
    records,
    runtime::directory::Rules,
};
use app_stores::{
    AnyStore, GoogleAddresses, app_store::AppStore, firebase::Firebase, google_play::GooglePlay,
    testflight::Testflight,
};
use commerce::Vendure;
use container_engine::docker::Docker;
use contract::{
    checkouts::PaymentProvider, quotas::Quotas, releases::Target, retention::Retentions,
    service::Registration,
};
use engine::{allowed, engines, own_engine};
use files::Files;
use payments::{Provider, paystack::Paystack, stripe::Stripe};
use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};
use store::{Change, Nodes, Store as Database, StoreError};

/// The platform, and the adapters that the edge uses directly.
pub struct Wired {
    pub platform: Platform,
    pub vault: Arc<Vault>,
    pub dumps: Arc<DumpFolder>,
    pub folders: Arc<FolderStore>,
    /// What authorities of certificates are shown.
    pub proofs: Arc<Proofs>,
    /// The token for the first administrator, if there is none yet.
    pub first_start_token: Option<String>,
}

/// Opens the store and starts the platform on the arbiters.
pub async fn start(args: &ServeArgs, arbiters: &[ArbiterHandle]) -> Result<Wired, String> {
    let (data, random) = (args.storage.data.as_path(), Random::default());
    let nodes = args.storage.nodes()?;
    let largest = MOST_SEGMENTS as u64 * SEGMENT;
    if nodes == Nodes::Several && args.limits.max_artifact_bytes > largest {
        return Err(format!("with SVC_NODES=several, SVC_MAX_ARTIFACT_BYTES is at most {largest}"));
    }
    let store = database::open(data, &args.storage.database, nodes)?;
    if args.hosting.docker_host.as_deref().is_some_and(|host| host.starts_with("tcp://")) {
        tracing::warn!(
            "the container engine is reached without TLS: whoever reaches its port rules its machine"
        );
    }
    if args.network.shares_origin() {
        let told = if sandboxes_paths(args) {
            "anybody may register, so the pages of instances have no origin, and their scripts no cookies and no \
             storage: set SVC_INSTANCE_DOMAIN for pages that need them"
        } else {
            "all instances share the origin of this service, so that the pages of one can act as another: set \
             SVC_INSTANCE_DOMAIN where people do not trust each other"
        };
        tracing::warn!("{told}");
    }
    let keys = keys(data, &store, &random).await?;
    let first_start_token = first_start(data, &store, &random)
        .map_err(|e| format!("the token for the first administrator: {e}"))?;
    let files = Files::open(&args.storage, nodes)?;
    files.vault.check().await?;
    let catalogue = Catalogue::read(include_str!("../data/catalogue.json"))?;
    let proofs = Arc::new(Proofs::default());
    let acme = args.tls.https_listen.map(|_| Acme::new(args.tls.acme(), proofs.clone()));
    let certificates = acme.map(|acme| Arc::new(acme) as Arc<dyn CertificateAuthority>);
    let engines = engines(args, &keys)?;
    let docker = own_engine(args, &engines, &store)?;
    let engines = (docker, engines);
    let ports = ports(args, &keys, random, &files, engines, certificates, &catalogue)?;
    let settings = settings(args, keys, first_start_token.clone())?;
    let platform = Platform::start(store, ports, settings, arbiters, Rules::default())
        .await
        .map_err(|e| e.to_string())?;
    register(&catalogue, &platform).await?;
    let Files { vault, dumps, folders, .. } = files;
    Ok(Wired { platform, vault, dumps, folders, proofs, first_start_token })
}

/// How often a node that starts beside others tries to register what comes with the service.
const TRIES: usize = 5;

/// Registers what comes with the service. Another node may do so at the same time.
async fn register(catalogue: &Catalogue, platform: &Platform) -> Result<(), String> {
    let world = &platform.world;
    let mut tries = if world.store.is_alone() { 1 } else { TRIES };
    loop {
        tries -= 1;
        match catalogue.register(world).await {
            Err(e) if tries > 0 => tracing::info!(error = %e, "trying again to register"),
            done => return done,
        }
        world.store.fence().await.map_err(|e| e.to_string())?;
    }
}

/// The outside world, as the settings connect it.
fn ports(
    args: &ServeArgs,
    keys: &Keys,
    random: Random,
    files: &Files,
    (engine, engines): (Docker, DockerEngines),
    certificates: Option<Arc<dyn CertificateAuthority>>,
    catalogue: &Catalogue,
) -> Result<Ports, String> {
    let data = &args.storage.data;
    Ok(Ports {
        clock: clock::system(),
        random,
        passwords: Arc::new(Argon2id::default()),
        binaries: files.vault.clone(),
        mail: mail(args.messages.mail_url.as_deref(), &args.messages.mail_from)?,
        app_stores: Arc::new(app_stores(&args.app_stores)?),
        credential_files: Arc::new(CredentialOpener::default()),
        payments: Arc::new(payment_providers(&args.commerce)?),
        shop: Arc::new(Vendure::new(args.commerce.shop_private_hosts.clone().into())?),
        engine: Arc::new(engine),
        engines: Arc::new(engines),
        egress: Arc::new(
            Ways::open(data.join("egress"), allowed(args)?)
                .map_err(|e| format!("the proxies of builds: {e}"))?,
        ),
        machine: Arc::new(ThisMachine { data: data.clone() }),
        upstream: Arc::new(Servers),
        parse: Arc::new(ParseClient),
        sources: Arc::new(
            Git::new(data.join("repositories"), args.builds.git_private_hosts.clone().into())
                .map_err(|e| format!("repositories: {e}"))?,
        ),
        folders: files.folders.clone(),
        audit_archive: files.audit_archive.clone(),
        ci: github_app(&args.builds)?,
        identities: Arc::new(Issuers::new(&args.builds.oidc_issuers)?),
        attestations: Arc::new(
            TrustedRoots::read(args.builds.trusted_roots.clone())
                .map_err(|e| format!("the trusted roots: {e}"))?,
        ),
        certificates,
        domain_records: Arc::new(NameServers::new(args.network.name_server)),
        dumps: files.dumps.clone(),
        receivers: Arc::new(HttpReceivers::new(
            args.messages.webhook_private_hosts.clone().into(),
        )?),
        registries: Arc::new(registries::read(&args.hosting)?),
        recipes: Arc::new(recipes::read(&args.hosting).map_err(|e| format!("the recipes: {e}"))?),
        advisories: Arc::new(catalogue.advisories()),
        sealer: sealer(keys)?,
        site: Arc::new(site(args, keys)?),
    })
}

/// Whether a page that is opened by the path of an instance has no origin: where instances have host names, nobody
/// needs it there, and where strangers may make instances, the script of one could act as another.
fn sandboxes_paths(args: &ServeArgs) -> bool {
    let is_open = Registration::from(args.access.registration) == Registration::Open;
    args.network.instance_domain.is_some() || (args.network.shares_origin() && is_open)
}

/// What the platform knows of this installation.
fn site(args: &ServeArgs, keys: &Keys) -> Result<Site, String> {
    let mut quotas = Quotas::read(include_str!("../data/quotas.json"))?;
    for (tier, quota, limit) in &args.limits.quotas {
        quotas.set(*tier, *quota, *limit);
    }
    let mut retentions = Retentions::default();
    for (retention, days) in &args.limits.retention {
        retentions.set(*retention, *days);
    }
    Ok(Site {
        quotas,
        retentions,
        installation: keys.application_id.clone(),
        api_url: args.network.api_url(),
        instance_domain: args.network.instance_domain()?,
        sandboxes_paths: sandboxes_paths(args),
        own_hosts: args.network.own_hosts()?,
        registration: args.access.registration.into(),
        github: args
            .builds
            .github_app_id
            .as_ref()
            .and_then(|_| args.builds.github_url.parse().ok()),
        platform_app: args.commerce.platform_app,
        platform_plans: args.commerce.platform_plans.iter().cloned().collect(),
        overcommit: Overcommit {
            memory: args.hosting.memory_overcommit,
            cpus: args.hosting.cpu_overcommit,
        },
        deployment_limit: Duration::from_secs(args.hosting.deployment_limit.into()),
        image_build_limit: Duration::from_secs(args.hosting.image_build_limit.into()),
        build_size: args.builds.size(),
    })
}

fn settings(
    args: &ServeArgs,
    keys: Keys,
    first_start_token: Option<String>,
) -> Result<Settings, String> {
    Ok(Settings {
        api_url: args.network.api_url(),
        dashboard_url: args.network.known_dashboard_url(),
        application_id: keys.application_id,
        javascript_key: args.access.javascript_key.clone(),
        require_javascript_key: args.access.require_javascript_key,
        master_key: keys.master_key,
        first_start_token,
        master_key_addresses: args
            .access
            .master_key_addresses
            .iter()
            .map(|address| address.to_canonical())
            .collect(),
        signing_key: derived_key(&keys.signing_key)?,
        anonymous_tier: args.access.anonymous_tier,
        largest_artifact: args.limits.max_artifact_bytes,
        upload_lifetime: Duration::from_secs(args.limits.upload_url_ttl),
        oidc_issuers: args.builds.oidc_issuers.clone(),
        build_limit: Duration::from_secs(args.builds.build_limit),
        function_limit: Duration::from_secs(args.limits.function_timeout),
        largest_log_reply: args.limits.max_log_bytes,
        default_templates: DefaultTemplates {
            backend: args.hosting.backend_template.clone(),
            market: args.hosting.market_template.clone(),
        },
    })
}

/// The keys of the store. Refuses other keys than those with which it was written.
async fn keys(data: &Path, store: &Database, random: &Random) -> Result<Keys, String> {
    let text = |e: StoreError| e.to_string();
    let known = store.get::<Installation>(&This).map_err(text)?;
    let has_secrets =
        || Ok(known.is_some() || records::has_secrets(store).map_err(std::io::Error::other)?);
    let is_new = store.is_empty().map_err(text)?;
    let keys = secrets::keys(data, random, is_new, has_secrets);
    let keys = keys.map_err(|e| format!("the keys: {e}"))?;
    let present = keys.installation();
    let older = keys.older_fingerprints();
    if let Some(known) = &known {
        known
            .accepts(&present, &older)
            .map_err(|e| format!("{}: {e}", secrets::keys_path(data).display()))?;
    }
    // While keys are renewed, the store may need the older ones.
    if older.is_empty() && known.as_ref().is_none_or(|known| ***known != present) {
        let change =
            Change::new().replace::<Installation>(&This, known.as_deref(), present.clone());
        match store.commit(change).await {
            // Another node was faster.
            Err(StoreError::Stale { .. }) => {
                store.fence().await.map_err(text)?;
                let known = store.get::<Installation>(&This).map_err(text)?;
                let known = known.ok_or("the keys were removed meanwhile")?;
                known.accepts(&present, &[]).map_err(|e| e.to_string())?;
            }
            done => done.map_err(text)?,
        }
    }
    Ok(keys)
}

/// The stores that publish apps.
fn app_stores(args: &AppStoreArgs) -> Result<HashMap<Target, Arc<dyn AnyStore>>, String> {
    let google = GoogleAddresses {
        play: args.google_play_url.clone(),
        firebase: args.firebase_url.clone(),
        token: args.google_token_url.clone(),
    };
    let apple = &args.app_store_connect_url;
    let play: Arc<dyn AnyStore> = Arc::new(GooglePlay::new(&google)?);
    let firebase: Arc<dyn AnyStore> = Arc::new(Firebase::new(&google)?);
    let app_store: Arc<dyn AnyStore> = Arc::new(AppStore::new(apple)?);
    let testflight: Arc<dyn AnyStore> = Arc::new(Testflight::new(apple)?);
    Ok(HashMap::from([
        (Target::GooglePlay, play),
        (Target::FirebaseAppDistribution, firebase),
        (Target::AppStore, app_store),
        (Target::Testflight, testflight),
    ]))
}

fn payment_providers(
    args: &CommerceArgs,
) -> Result<HashMap<PaymentProvider, Arc<dyn Provider>>, String> {
    let paystack: Arc<dyn Provider> = Arc::new(Paystack::new(&args.paystack_url)?);
    let stripe: Arc<dyn Provider> = Arc::new(Stripe::new(&args.stripe_url)?);
    Ok(HashMap::from([(PaymentProvider::Paystack, paystack), (PaymentProvider::Stripe, stripe)]))
}

fn github_app(args: &BuildArgs) -> Result<Option<Arc<dyn Ci>>, String> {
    let (Some(id), Some(key)) = (&args.github_app_id, &args.github_app_key) else {
        return Ok(None);
    };
    let central = args.central_repository.clone();
    let central = central
        .map(|(repository, git_ref)| Central { repository, git_ref: git_ref.as_str().to_owned() });
    let app = GithubApp::new(id, key, &args.github_url, &args.github_api_url, central)?;
    Ok(Some(Arc::new(app)))
}

/// Seals with the encryption key, and opens also what older ones sealed.
pub fn sealer(keys: &Keys) -> Result<Sealer, String> {
    let older: Result<Vec<_>, _> =
        keys.older_encryption_keys.iter().map(|key| derived_key(key)).collect();
    Ok(Sealer::with_older(derived_key(&keys.encryption_key)?, &older?))
}

/// The signing key and the encryption key need 32 bytes: they are digests of the text in the file.
fn derived_key(text: &str) -> Result<[u8; 32], String> {
    use sha2::{Digest, Sha256};
    if text.len() < 32 {
        return Err(
            "a key in the secrets is too short: restore the file, or remove it to make new keys"
                .into(),
        );
    }
    Ok(Sha256::digest(text).into())
}

/// The token for the first administrator, if there is none yet. A token from an earlier start stays
/// valid until it is used; people who register meanwhile change nothing.
fn first_start(
    data: &Path,
    store: &Database,
    random: &Random,
) -> Result<Option<String>, Box<dyn std::error::Error>> {
    let claim = AccountClaim::FirstAdministrator;
    if store.holder::<Accounts>(&claim)?.is_some() {
        secrets::end_first_start(data)?;
        return Ok(None);
    }
    let begun = secrets::first_start_path(data).exists();
    let is_new = store.whole::<Accounts>(None).keys().next().transpose()?.is_none();
    if !begun && !is_new {
        return Ok(None);
    }
    Ok(Some(secrets::first_start(data, random)?.token))
}
