//! Ports for programs that a test starts.

use std::net::TcpListener;

/// The first port that systems give to outgoing connections by default. Tests make many, and one of
/// them could take a port between the moment it is found free and the moment the program listens.
const FIRST_OF_CONNECTIONS: u16 = 32_768;

/// A port of this machine on which nothing listens, outside of those of outgoing connections.
pub fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(10_000..FIRST_OF_CONNECTIONS);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
