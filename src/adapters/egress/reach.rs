//! The addresses of the inside that instances reach all the same.

use remote::look_up;
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// How long a look-up may take.
const LOOKED_UP_WITHIN: Duration = Duration::from_secs(5);

/// Hosts, with their ports, whose addresses may change.
#[derive(Debug, Default)]
pub struct Reach {
    hosts: Vec<(String, u16)>,
    /// What was last found. A failed look-up takes nothing away.
    known: Mutex<HashMap<String, Vec<IpAddr>>>,
}

impl Reach {
    /// An IPv6 address may be in brackets.
    pub fn new(hosts: impl IntoIterator<Item = (String, u16)>) -> Self {
        Reach { hosts: hosts.into_iter().collect(), known: Mutex::default() }
    }

    /// The addresses as they are now, in order.
    pub async fn addresses(&self) -> Vec<SocketAddr> {
        let found = futures_util::future::join_all(self.hosts.iter().map(|(host, port)| async {
            let found = self.look_up(host).await;
            found.into_iter().map(|address| SocketAddr::new(address, *port)).collect::<Vec<_>>()
        }));
        let mut all = found.await.concat();
        all.sort_unstable();
        all.dedup();
        all
    }

    async fn look_up(&self, host: &str) -> Vec<IpAddr> {
        let found = tokio::time::timeout(LOOKED_UP_WITHIN, look_up(host)).await;
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Ok(Ok(found)) => {
                known().insert(host.to_owned(), found.clone());
                found
            }
            Ok(Err(_)) | Err(_) => {
                tracing::warn!(
                    host,
                    "the address of a host that instances may reach is not known now"
                );
                known().get(host).cloned().unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_are_those_of_all_hosts_and_a_failed_look_up_takes_none_away() {
        let hosts = [("[::1]", 2), ("127.0.0.2", 1), ("127.0.0.2", 1), ("nobody.invalid", 3)];
        let reach = Reach::new(hosts.map(|(host, port)| (host.to_owned(), port)));
        let expected = |all: &[&str]| all.iter().map(|at| at.parse().unwrap()).collect::<Vec<_>>();
        assert_eq!(reach.addresses().await, expected(&["127.0.0.2:1", "[::1]:2"]));
        let before = vec!["127.0.0.3".parse().unwrap()];
        reach.known.lock().unwrap().insert("nobody.invalid".into(), before);
        let all = expected(&["127.0.0.2:1", "127.0.0.3:3", "[::1]:2"]);
        assert_eq!(reach.addresses().await, all);
    }
}
