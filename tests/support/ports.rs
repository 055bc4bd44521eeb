//! Ports for programs that a test starts.

use std::{
    fs::File,
    net::TcpListener,
    ops::Range,
    sync::{Mutex, PoisonError},
};
use test_support::claims;

/// The ports of programs. Above them are those that systems give to outgoing connections by default:
/// tests make many, and one of them could take a port between the moment it is found free and the moment
/// the program listens.
const PORTS: Range<u16> = 10_000..32_768;

/// How many ports a test program claims at once.
const BLOCK: u16 = 64;

/// The blocks that this test program claimed. Their files are locked until it ends.
struct Claimed {
    files: Vec<File>,
    unused: Range<u16>,
}

static CLAIMED: Mutex<Claimed> = Mutex::new(Claimed { files: Vec::new(), unused: 0..0 });

/// A port of this machine on which nothing listens, and which no other test gets, also of another test
/// program.
pub fn free_port() -> u16 {
    let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let Some(port) = claimed.unused.next() else {
            claimed.claim();
            continue;
        };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl Claimed {
    fn claim(&mut self) {
        let blocks = PORTS.len() as u16 / BLOCK;
        let first = fastrand::u16(..blocks);
        let order = (0..blocks).map(|i| (first + i) % blocks);
        let (block, file) =
            claims::claim("ports", order).expect("a block of ports that no test program has");
        self.files.push(file);
        let start = PORTS.start + block * BLOCK;
        self.unused = start..start + BLOCK;
    }
}
