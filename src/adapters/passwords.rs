//! Hashes passwords with Argon2id on blocking threads.

use actors::{
    ports::{PortError, passwords::Passwords},
    runtime::turns::{Tenant, Turns},
};
use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use async_trait::async_trait;
use contract::{Password, PasswordAttempt};

/// Sign-ins that wait at most, and those of one tenant. Further ones are refused.
const LONGEST_QUEUE: usize = 256;
const OF_TENANT: usize = 128;

/// The hash for unknown accounts, so that their refusal takes as long as that of a wrong password.
/// No password hashes to zeros.
const DECOY: &str = "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5J3MgYWNjb3VudA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Argon2id with its default cost (19 MiB, 2 passes). As many hashes run at the same time as there
/// are processors.
pub struct Argon2id(Turns<Tenant>);

impl Default for Argon2id {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Argon2id(Turns::new(processors, processors).waiting(LONGEST_QUEUE, OF_TENANT))
    }
}

impl Argon2id {
    async fn on_a_thread<T: Send + 'static>(
        &self,
        tenant: Tenant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PortError> {
        let turn = self.0.take(tenant).await.map_err(|e| PortError(e.to_string()))?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        done.await.map_err(|e| PortError(e.to_string()))
    }
}

fn hash(password: &str) -> Result<String, PortError> {
    let hashed = Argon2::default().hash_password(password.as_bytes());
    hashed.map(|hash| hash.to_string()).map_err(|e| PortError(e.to_string()))
}

#[async_trait]
impl Passwords for Argon2id {
    async fn hash(&self, tenant: Tenant, password: Password) -> Result<String, PortError> {
        self.on_a_thread(tenant, move || hash(password.as_str())).await?
    }

    async fn verify(
        &self,
        tenant: Tenant,
        password: PasswordAttempt,
        expected: Option<String>,
    ) -> Result<bool, PortError> {
        let known = expected.is_some();
        let expected = expected.unwrap_or_else(|| DECOY.to_owned());
        let verify = move || {
            let parsed = PasswordHash::new(&expected).map_err(|e| PortError(e.to_string()))?;
            Ok(Argon2::default().verify_password(password.as_str().as_bytes(), &parsed).is_ok())
        };
        let right: Result<bool, PortError> = self.on_a_thread(tenant, verify).await?;
        Ok(right? && known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise the time of a refusal would reveal whether an account exists.
    #[test]
    fn the_decoy_costs_what_a_password_costs() {
        let (decoy, real) = (PasswordHash::new(DECOY).unwrap(), hash("a password").unwrap());
        let real = PasswordHash::new(&real).unwrap();
        assert_eq!(decoy.algorithm, real.algorithm);
        assert_eq!((decoy.version, &decoy.params), (real.version, &real.params));
        let length = |hash: &PasswordHash| hash.hash.as_ref().map(|output| output.len());
        assert_eq!(length(&decoy), length(&real));
        let verified = Argon2::default().verify_password(b"a password", &decoy);
        assert_eq!(verified, Err(argon2::password_hash::Error::PasswordInvalid));
    }
}
