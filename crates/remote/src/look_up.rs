//! Looks hosts up with the resolver of the system.

use std::{
    io,
    net::{IpAddr, ToSocketAddrs},
};
use tokio::sync::Semaphore;

/// The look-ups of this process at a time: half of the threads that may block. The resolver of the
/// system cannot be interrupted, so a look-up that nobody answers holds its thread for half a minute,
/// whatever limit its caller has. The other half is for files.
static TURNS: Semaphore = Semaphore::const_new(256);

/// The addresses of a host, which may be a literal address; one of IPv6 also in brackets, as in a URL.
///
/// # Errors
///
/// Nobody knows the host, or the resolver does not work.
pub async fn look_up(host: &str) -> io::Result<Vec<IpAddr>> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    let (turn, host) = (TURNS.acquire().await.map_err(io::Error::other)?, host.to_owned());
    let found = tokio::task::spawn_blocking(move || {
        // Held by the thread, not by the caller.
        let _turn = turn;
        let found = (host.as_str(), 0).to_socket_addrs()?;
        Ok(found.map(|address| address.ip()).collect())
    });
    found.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[tokio::test]
    async fn a_look_up_holds_its_turn_until_its_end() {
        for host in ["::1", "[::1]"] {
            assert_eq!(look_up(host).await.ok(), Some(vec![IpAddr::V6(Ipv6Addr::LOCALHOST)]));
        }
        let found = look_up("localhost").await.unwrap_or_default();
        assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty());
        let all = TURNS.try_acquire_many(256);
        assert!(all.is_ok(), "it came back");
        // Without a turn, a literal address is known still, and no name is.
        assert!(look_up("127.0.0.1").await.is_ok());
        let waits =
            tokio::time::timeout(std::time::Duration::from_millis(50), look_up("localhost"));
        assert!(waits.await.is_err());
    }
}
