//! The handlers of the group Credentials.

use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        delivery::{
            credentials::{Command, CredentialClaim, Credentials, New, State, access::open},
            publications, repositories,
        },
        people::{apps::Apps, tenant::tenant},
        world::World,
    },
    ports::credentials::{CredentialContents, CredentialUpload, Secret},
    runtime::{entries::Under, pagination, resource::Input, store::get},
};
use app_stores::{RemoteError, StoreKey};
use contract::{
    AppId, CredentialId, Fault, Name, Page, Patch, Serves,
    checkouts::PaymentProvider,
    credentials::{
        AccessCheck, CheckCredential, Credential, CredentialKind, DeleteCredential,
        DeletedCredential, GetCredentials, SetCredential, UpdateCredential,
    },
    releases::Target,
    text::{Currency, FileData, GitUrl},
};
use data_encoding::BASE64;
use std::time::Duration;

/// How many credentials an app may have.
const MOST: u64 = 50;
/// How long a store may take to answer a check.
const CHECK_WITHIN: Duration = Duration::from_secs(25);

fn show(state: &State) -> Result<Credential, Fault> {
    Ok(state.credential.clone())
}

fn bytes(field: &'static str, data: &FileData) -> Result<Vec<u8>, Fault> {
    let decoded = BASE64.decode(data.as_str().as_bytes());
    decoded.map_err(|_| Fault::invalid(field, "must be a file in base64, with its padding"))
}

/// The name of a credential. That of a `repositoryHost` is a host as addresses of repositories name
/// it, in lower case and with a port only if it is not the usual one.
fn name(kind: CredentialKind, name: Name) -> Result<Name, Fault> {
    if kind != CredentialKind::RepositoryHost {
        return Ok(name);
    }
    let host = Some(name.as_str()).filter(|host| !host.contains('/'));
    let url = host.and_then(|host| format!("https://{host}/a").parse::<GitUrl>().ok());
    let url = url.filter(|url| !url.names_port_zero());
    let host = url.and_then(|url| url.authority().parse().ok());
    host.ok_or_else(|| {
        Fault::invalid(
            "name",
            "must be a host such as git.example.com, or git.example.com:8443 with a port",
        )
    })
}

/// Refuses parameters that the kind does not have.
fn consistent(p: &SetCredential) -> Result<(), Fault> {
    use CredentialKind as K;
    let allowed = [
        ("password", p.password.is_some(), &[K::IosSigning, K::AndroidKeystore][..]),
        ("profile", p.profile.is_some(), &[K::IosSigning]),
        ("alias", p.alias.is_some(), &[K::AndroidKeystore]),
        ("keyPassword", p.key_password.is_some(), &[K::AndroidKeystore]),
        ("keyId", p.key_id.is_some(), &[K::AppStoreConnectKey]),
        ("issuerId", p.issuer_id.is_some(), &[K::AppStoreConnectKey]),
        ("currency", p.currency.is_some(), &[K::Paystack, K::Stripe]),
    ];
    match allowed.iter().find(|(_, given, kinds)| *given && !kinds.contains(&p.kind)) {
        Some((field, ..)) => Err(Fault::invalid(
            field,
            format!("is not for credentials of the kind {}", p.kind.name()),
        )),
        None if p.kind == K::IosSigning && p.profile.is_none() => Err(Fault::invalid(
            "profile",
            "is required: the provisioning profile with which apps are signed",
        )),
        None => p.currency.as_ref().map_or(Ok(()), |currency| charged(p.kind, currency)),
    }
}

/// Refuses a currency in which a provider charges nobody.
fn charged(kind: CredentialKind, currency: &Currency) -> Result<(), Fault> {
    let provider = match kind {
        CredentialKind::Paystack => PaymentProvider::Paystack,
        CredentialKind::Stripe => PaymentProvider::Stripe,
        _ => {
            let why = format!("is not for credentials of the kind {}", kind.name());
            return Err(Fault::invalid("currency", why));
        }
    };
    payments::check_currency(provider, currency).map_err(|why| Fault::invalid("currency", why))
}

impl Serves<SetCredential> for Platform {
    async fn serve(&self, cx: &Call, p: SetCredential) -> Result<Credential, Fault> {
        consistent(&p)?;
        let p = SetCredential { name: name(p.kind, p.name)?, ..p };
        let (world, store) = (&self.world, &self.world.store);
        let held = store.holder(&CredentialClaim::named(p.app_id, p.kind, &p.name))?;
        let check_room = || {
            let known = store.count::<Credentials>(&Under::<Apps>(p.app_id))?;
            match held.is_none() && known >= MOST {
                true => Err(Fault::NotNow(format!(
                    "this app has {MOST} credentials, which is the most; delete one with svc_deleteCredential first"
                ))),
                false => Ok(()),
            }
        };
        check_room()?;
        let text = |text: Option<Name>| text.map(String::from);
        let upload = CredentialUpload {
            kind: p.kind,
            data: bytes("data", &p.data)?,
            profile: p.profile.as_ref().map(|profile| bytes("profile", profile)).transpose()?,
            password: p.password,
            alias: text(p.alias),
            key_password: p.key_password,
            key_id: text(p.key_id),
            issuer_id: text(p.issuer_id),
        };
        let tenant = tenant(store, p.app_id)?;
        let opened = world.ports.credential_files.open(tenant, upload, cx.now).await?;
        let CredentialContents { facts, expires_at, warnings, secret } =
            opened.map_err(|refused| Fault::invalid(refused.field, refused.why))?;
        let _turn = world.creation(p.app_id).await?;
        check_room()?;
        let id: CredentialId = held.unwrap_or_else(|| world.ports.random.id(cx.now));
        let json = serde_json::to_string(&secret).map_err(|_| Fault::Internal)?;
        let secret = world.ports.sealer.seal(&id.to_string(), &json);
        let credential = Credential {
            id,
            app_id: p.app_id,
            kind: p.kind,
            name: p.name,
            facts,
            expires_at,
            currency: p.currency,
            account_currency: None,
            warnings,
            check: None,
            last_used_at: None,
            created_by: cx.caller.user.as_ref().map(|user| user.id),
            created_at: cx.now,
            updated_at: cx.now,
        };
        let new = New { credential, secret: secret.map_err(|_| Fault::Internal)? };
        let input = match held {
            Some(_) => Input::Command(Command::Replace(Box::new(new))),
            None => Input::Create(Box::new(new)),
        };
        cx.to::<Credentials>(id).change_or_create(input, show).await
    }
}

impl Serves<UpdateCredential> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateCredential) -> Result<Credential, Fault> {
        let (_, seen) = cx.ancestry.credential()?;
        if let Patch::Set(currency) = &p.currency {
            charged(seen.state.credential.kind, currency)?;
        }
        let command = Command::Currency(p.currency);
        cx.to::<Credentials>(p.credential_id).change(command, show).await
    }
}

impl Serves<GetCredentials> for Platform {
    async fn serve(&self, _: &Call, p: GetCredentials) -> Result<Page<Credential>, Fault> {
        let (store, entry) = (&self.world.store, Under::<Apps>(p.app_id));
        pagination::page::<Credentials, _>(store, &entry, (p.limit, p.cursor), |_, seen| {
            let credential = &seen.state.credential;
            Ok(p.kind.is_none_or(|kind| credential.kind == kind).then(|| credential.clone()))
        })
    }
}

impl Serves<DeleteCredential> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteCredential) -> Result<DeletedCredential, Fault> {
        let reply = |state: &State| Ok(DeletedCredential { deleted: state.credential.id });
        cx.to::<Credentials>(p.credential_id).change(Command::Remove, reply).await
    }
}

impl Serves<CheckCredential> for Platform {
    async fn serve(&self, cx: &Call, p: CheckCredential) -> Result<Credential, Fault> {
        let world = &self.world;
        let (id, seen) = cx.ancestry.credential()?;
        let (credential, app) = (seen.state.credential.clone(), seen.state.credential.app_id);
        let secret = open(world, id, &seen.state.secret)?;
        let found = match (credential.kind, secret) {
            (CredentialKind::AppStoreConnectKey, Secret::AppStoreConnect(key)) => {
                check_store(&self.world, Target::AppStore, &StoreKey::Apple(key), app).await?
            }
            (CredentialKind::GoogleServiceAccount, Secret::Google(key)) => {
                check_store(&self.world, Target::GooglePlay, &StoreKey::Google(key), app).await?
            }
            (CredentialKind::FirebaseServiceAccount, Secret::Google(key)) => {
                check_store(
                    &self.world,
                    Target::FirebaseAppDistribution,
                    &StoreKey::Google(key),
                    app,
                )
                .await?
            }
            (CredentialKind::Paystack, Secret::Paystack(key)) => {
                check_provider(
                    &self.world,
                    PaymentProvider::Paystack,
                    &payments::ProviderKey::Paystack(key),
                )
                .await?
            }
            (CredentialKind::Stripe, Secret::Stripe(key)) => {
                check_provider(
                    &self.world,
                    PaymentProvider::Stripe,
                    &payments::ProviderKey::Stripe(key),
                )
                .await?
            }
            (CredentialKind::RepositoryHost, Secret::Token(token)) => {
                repositories::try_token(world, app, &credential.name, token).await?
            }
            _ => match credential.expires_at {
                Some(at) if at <= cx.now => Err(format!("It expired at {at}.")),
                Some(at) => Ok(format!("It is valid until {at}.")),
                None => Ok("It does not expire.".into()),
            },
        };
        let ok = found.is_ok();
        let (Ok(text) | Err(text)) = found;
        let check = AccessCheck { at: world.ports.clock.now(), ok, text };
        let checked = Command::Checked { stored_at: credential.updated_at, check };
        cx.to::<Credentials>(p.credential_id).change(checked, show).await
    }
}

/// What a check found: what the key opens, or why it does not. `None`: there was no answer in time.
fn found(
    whom: &'static str,
    check: Option<Result<String, RemoteError>>,
) -> Result<Result<String, String>, Fault> {
    match check {
        Some(Ok(text)) => Ok(Ok(text)),
        Some(Err(RemoteError::Refused(why))) => Ok(Err(why)),
        Some(Err(RemoteError::Busy { .. } | RemoteError::Unclear(_))) => {
            Err(Fault::Unavailable(whom))
        }
        None => Err(Fault::NoAnswer(whom)),
    }
}

/// Asks a store what a key opens.
async fn check_store(
    world: &World,
    target: Target,
    key: &StoreKey,
    app: AppId,
) -> Result<Result<String, String>, Fault> {
    let ports = &world.ports;
    let Some(store) = ports.app_stores.get(&target) else { return Err(Fault::Internal) };
    let name = store_identifier(world, target, app)?;
    let check = ports.clock.limit(CHECK_WITHIN, store.check_access(key, &name)).await;
    found("the store", check)
}

/// Asks a payment provider whether it accepts a key.
async fn check_provider(
    world: &World,
    provider: PaymentProvider,
    key: &payments::ProviderKey,
) -> Result<Result<String, String>, Fault> {
    let ports = &world.ports;
    let Some(provider) = ports.payments.get(&provider) else { return Err(Fault::Internal) };
    let check = ports.clock.limit(CHECK_WITHIN, provider.check_access(key)).await;
    found("the payment provider", check)
}

/// The name by which the store knows the app.
fn store_identifier(world: &World, target: Target, app_id: AppId) -> Result<String, Fault> {
    let app = get::<Apps>(&world.store, app_id)?;
    let (identity, field) = match target {
        Target::FirebaseAppDistribution => {
            let known = publications::firebase_app(&world.store, app_id)?;
            return known.map(String::from).ok_or_else(|| {
                Fault::NotNow(
                    "no release of this app names its Firebase app yet: publish one with \
                     options.firebase"
                        .into(),
                )
            });
        }
        Target::AppStore | Target::Testflight => (&app.ios.identifier, "bundleId"),
        Target::GooglePlay | Target::Ota => (&app.android.identifier, "packageName"),
    };
    let found = identity.as_ref().map(|identifier| identifier.as_str().to_owned());
    found.ok_or_else(|| {
        Fault::NotNow(format!(
            "the app has no {field} yet: set it with updateApp, or upload an artifact"
        ))
    })
}
