//! Certificates from an authority that speaks ACME (RFC 8555), such as Let's Encrypt.

mod proofs;

pub use proofs::{PROOF_PROTOCOL, Proofs};

use actors::ports::certificate_authority::{CertificateAuthority, Issued, NotIssued, Order};
use async_trait::async_trait;
use contract::{Timestamp, certificates::HostName};
use instant_acme::{
    Account, AccountBuilder, AccountCredentials, AuthorizationHandle, AuthorizationStatus,
    ChallengeType, Error, ExternalAccountKey, Identifier, NewAccount, NewOrder, OrderStatus,
    Problem, RetryPolicy,
};
use proofs::Shown;
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use std::{path::PathBuf, process::Stdio, sync::Arc, time::Duration};
use tokio::process::Command;
use x509_parser::pem::parse_x509_pem;

/// How long the authority may take to look at a name, and then to issue.
const RETRIES: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(50));
/// How long the program that writes DNS records may take. It waits until others see them.
const HOOK_WITHIN: Duration = Duration::from_secs(60);
/// How much of what that program says is kept, in bytes.
const MOST_SAID: usize = 1000;

/// The settings of [`Acme`].
#[derive(Clone)]
pub struct AcmeSettings {
    /// The address of the directory of the authority.
    pub directory: String,
    /// The certificate that the authority itself is trusted by (PEM). `None`: those of the machine.
    pub root: Option<PathBuf>,
    /// The e-mail address to which the authority writes.
    pub contact: Option<String>,
    /// The program that writes DNS records.
    pub dns_hook: Option<PathBuf>,
    /// The id and the bytes of the key with which the authority knows a customer (RFC 8555, section 7.3.4).
    pub customer: Option<(String, Vec<u8>)>,
}

/// A client of an authority.
pub struct Acme {
    settings: AcmeSettings,
    proofs: Arc<Proofs>,
}

impl Acme {
    pub fn new(settings: AcmeSettings, proofs: Arc<Proofs>) -> Self {
        Acme { settings, proofs }
    }

    /// A client with the roots that the authority is known by, which are read from files.
    async fn builder(&self) -> Result<AccountBuilder, NotIssued> {
        let root = self.settings.root.clone();
        let read = move || match root {
            Some(root) => Account::builder_with_root(root),
            None => Account::builder(),
        };
        let failed = |e: &dyn std::fmt::Display| {
            NotIssued::Unavailable(format!("the roots of the authority: {e}"))
        };
        tokio::task::spawn_blocking(read).await.map_err(|e| failed(&e))?.map_err(|e| failed(&e))
    }

    async fn account(&self, credentials: &str) -> Result<Account, NotIssued> {
        let credentials: AccountCredentials =
            serde_json::from_str(credentials).map_err(|e| NotIssued::NoAccount(e.to_string()))?;
        self.builder().await?.from_credentials(credentials).await.map_err(not_issued)
    }

    /// Shows what proves the name, and asks the authority to look. What is returned takes it back.
    async fn prove(
        &self,
        mut authorization: AuthorizationHandle<'_>,
        name: &HostName,
        failures: u32,
    ) -> Result<Option<Shown>, NotIssued> {
        match authorization.status {
            AuthorizationStatus::Pending => {}
            AuthorizationStatus::Valid => return Ok(None),
            status => {
                return Err(NotIssued::Refused(format!("the proof of the name is {status:?}")));
            }
        }
        let ways: &[ChallengeType] = match name.as_str().starts_with("*.") {
            true => &[ChallengeType::Dns01],
            false => &[ChallengeType::TlsAlpn01, ChallengeType::Http01],
        };
        let offered = |way: &&ChallengeType| {
            authorization.challenges.iter().any(|challenge| challenge.r#type == **way)
        };
        let ways: Vec<_> = ways.iter().filter(offered).collect();
        // Each failure tries the next way: a firewall may let one port through and not the other.
        let turn = usize::try_from(failures).unwrap_or(0).checked_rem(ways.len());
        let way = turn.and_then(|turn| ways.get(turn)).map(|way| (*way).clone());
        let none = || NotIssued::Refused("the authority offers no way to prove the name".into());
        let way = way.ok_or_else(none)?;
        let mut challenge = authorization.challenge(way.clone()).ok_or_else(none)?;
        let authorized = challenge.key_authorization();
        let shown = match way {
            ChallengeType::Http01 => self.proofs.answer(&challenge.token, authorized.as_str()),
            ChallengeType::TlsAlpn01 => {
                self.proofs.present(name, authorized.digest().as_ref()).map_err(own)?
            }
            _ => self.write_record(name, &authorized.dns_value()).await?,
        };
        challenge.set_ready().await.map_err(not_issued)?;
        Ok(Some(shown))
    }

    /// Has the operator's program write the DNS record of a proof. Another run takes it away.
    async fn write_record(&self, name: &HostName, value: &str) -> Result<Shown, NotIssued> {
        let Some(hook) = &self.settings.dns_hook else {
            return Err(NotIssued::Refused("SVC_ACME_DNS_HOOK is not set".into()));
        };
        let domain = name.as_str().trim_start_matches("*.");
        let record = format!("_acme-challenge.{domain}");
        let run = |what: &str| {
            let mut command = Command::new(hook);
            command.args([what, &record, value]).stdin(Stdio::null()).kill_on_drop(true);
            command
        };
        let (mut write, mut remove) = (run("present"), run("cleanup"));
        let remove = Shown::until_dropped(move || {
            remove.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(false);
            if let Err(e) = remove.spawn() {
                tracing::warn!(error = %e, "SVC_ACME_DNS_HOOK did not start to remove a record");
            }
        });
        let failed = |why: String| NotIssued::Unavailable(format!("SVC_ACME_DNS_HOOK {why}"));
        match tokio::time::timeout(HOOK_WITHIN, write.output()).await {
            Ok(Ok(done)) if done.status.success() => Ok(remove),
            Ok(Ok(done)) => {
                let said = String::from_utf8_lossy(&done.stderr);
                let end = said.floor_char_boundary(MOST_SAID);
                let said = said.get(..end).unwrap_or_default().trim();
                Err(failed(format!("ended with {}: {said}", done.status)))
            }
            Ok(Err(e)) => Err(failed(format!("did not start: {e}"))),
            Err(_) => Err(failed(format!("did not end within {} seconds", HOOK_WITHIN.as_secs()))),
        }
    }
}

#[async_trait]
impl CertificateAuthority for Acme {
    fn address(&self) -> &str {
        &self.settings.directory
    }

    fn issues_wildcards(&self) -> bool {
        self.settings.dns_hook.is_some()
    }

    async fn register(&self) -> Result<String, NotIssued> {
        let contact = self.settings.contact.as_ref().map(|contact| format!("mailto:{contact}"));
        let contact: Vec<&str> = contact.as_deref().into_iter().collect();
        let account = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let directory = self.settings.directory.clone();
        let customer = self.settings.customer.as_ref();
        let customer = customer.map(|(id, key)| ExternalAccountKey::new(id.clone(), key));
        let made = self.builder().await?.create(&account, directory, customer.as_ref()).await;
        let (_, credentials) = made.map_err(not_issued)?;
        serde_json::to_string(&credentials).map_err(own)
    }

    async fn order(&self, credentials: &str, name: &HostName) -> Result<Order, NotIssued> {
        let account = self.account(credentials).await?;
        let names = [Identifier::Dns(name.as_str().to_owned())];
        let order = account.new_order(&NewOrder::new(&names)).await.map_err(not_ordered)?;
        let key = KeyPair::generate().map_err(own)?.serialize_pem();
        Ok(Order { url: order.url().to_owned(), key })
    }

    async fn complete(
        &self,
        credentials: &str,
        name: &HostName,
        order: &Order,
        failures: u32,
    ) -> Result<Issued, NotIssued> {
        let account = self.account(credentials).await?;
        let mut at = account.order(order.url.clone()).await.map_err(not_issued)?;
        // The authority may look once more until it has issued.
        let mut shown = Vec::new();
        if at.state().status == OrderStatus::Pending {
            let mut authorizations = at.authorizations();
            while let Some(authorization) = authorizations.next().await {
                let authorization = authorization.map_err(not_issued)?;
                shown.extend(self.prove(authorization, name, failures).await?);
            }
            let polled = at.poll_ready(&RETRIES).await;
            // What was found at the name is told as an error of the order. It is none of the account.
            if at.state().error.is_none() {
                polled.map_err(not_issued)?;
            }
        }
        if at.state().status == OrderStatus::Invalid || at.state().error.is_some() {
            return Err(NotIssued::Refused(why_invalid(&mut at).await));
        }
        if at.state().status == OrderStatus::Ready {
            let mut request =
                CertificateParams::new(vec![name.as_str().to_owned()]).map_err(own)?;
            request.distinguished_name = DistinguishedName::new();
            let key = KeyPair::from_pem(&order.key).map_err(own)?;
            let request = request.serialize_request(&key).map_err(own)?;
            at.finalize_csr(request.der()).await.map_err(not_issued)?;
        }
        let chain = at.poll_certificate(&RETRIES).await.map_err(not_issued)?;
        let (valid_from, expires_at) = validity(&chain).map_err(NotIssued::Refused)?;
        Ok(Issued { chain, valid_from, expires_at })
    }
}

/// Why an order is invalid: what the authority found when it looked.
async fn why_invalid(order: &mut instant_acme::Order) -> String {
    let mut reasons: Vec<String> = order.state().error.iter().map(in_words).collect();
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        if authorization.refresh().await.is_ok() {
            let errors = authorization.challenges.iter().filter_map(|it| it.error.as_ref());
            reasons.extend(errors.map(in_words));
        }
    }
    // The order often says the same as its challenge.
    reasons.dedup();
    match reasons.is_empty() {
        true => "the authority refused the order and gave no reason".into(),
        false => reasons.join("; "),
    }
}

/// A problem as the authority explains it, or else by its type.
fn in_words(problem: &Problem) -> String {
    let known = problem.detail.as_ref().or(problem.r#type.as_ref());
    known.map_or_else(|| problem.to_string(), Clone::clone)
}

/// When the first certificate of a chain is valid.
fn validity(chain: &str) -> Result<(Timestamp, Timestamp), String> {
    let wrong = |e: &dyn std::fmt::Display| format!("the certificate cannot be read: {e}");
    let (_, pem) = parse_x509_pem(chain.as_bytes()).map_err(|e| wrong(&e))?;
    let validity = pem.parse_x509().map_err(|e| wrong(&e))?.validity().clone();
    let time = |seconds: i64| Timestamp::from_millis(seconds.saturating_mul(1000));
    Ok((time(validity.not_before.timestamp()), time(validity.not_after.timestamp())))
}

/// Something failed on this side.
fn own(e: impl std::fmt::Display) -> NotIssued {
    NotIssued::Refused(e.to_string())
}

/// What a failure of the authority means. The types of problems: RFC 8555, section 6.7.
fn not_issued(e: Error) -> NotIssued {
    let Error::Api(problem) = e else { return NotIssued::Unavailable(e.to_string()) };
    let text = in_words(&problem);
    let kind = problem.r#type.as_deref().and_then(|kind| kind.rsplit(':').next());
    match (kind.unwrap_or_default(), problem.status.unwrap_or(0)) {
        ("rateLimited", _) => NotIssued::TooMany(text),
        ("accountDoesNotExist", _) => NotIssued::NoAccount(text),
        ("externalAccountRequired", _) => NotIssued::Refused(format!(
            "{text}; set SVC_ACME_EAB_KID and SVC_ACME_EAB_HMAC to what the authority gave you"
        )),
        ("badNonce" | "serverInternal", _) | (_, 500..) => NotIssued::Unavailable(text),
        _ => NotIssued::Refused(text),
    }
}

/// What a failure of a new order means. Only here, `unauthorized` is about the account, which was deactivated: later,
/// it is about what was found at the name.
fn not_ordered(e: Error) -> NotIssued {
    match &e {
        Error::Api(problem)
            if problem.r#type.as_deref().is_some_and(|it| it.ends_with(":unauthorized")) =>
        {
            NotIssued::NoAccount(in_words(problem))
        }
        _ => not_issued(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(kind: &str, status: u16) -> Error {
        let problem = serde_json::json!({
            "type": format!("urn:ietf:params:acme:error:{kind}"), "detail": "why", "status": status,
        });
        Error::Api(serde_json::from_value(problem).unwrap())
    }

    #[test]
    fn each_problem_of_an_authority_has_its_consequence() {
        let why = || "why".to_owned();
        assert_eq!(not_issued(problem("rateLimited", 429)), NotIssued::TooMany(why()));
        assert_eq!(not_ordered(problem("rateLimited", 429)), NotIssued::TooMany(why()));
        assert_eq!(not_issued(problem("accountDoesNotExist", 400)), NotIssued::NoAccount(why()));
        assert_eq!(not_ordered(problem("unauthorized", 403)), NotIssued::NoAccount(why()));
        assert_eq!(not_issued(problem("unauthorized", 403)), NotIssued::Refused(why()));
        assert_eq!(not_issued(problem("rejectedIdentifier", 400)), NotIssued::Refused(why()));
        assert_eq!(not_issued(problem("serverInternal", 500)), NotIssued::Unavailable(why()));
        assert_eq!(not_issued(problem("badNonce", 400)), NotIssued::Unavailable(why()));
        let unread = serde_json::from_str::<u8>("<html>").unwrap_err();
        assert!(matches!(not_issued(Error::Json(unread)), NotIssued::Unavailable(_)));
    }
}
