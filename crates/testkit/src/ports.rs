//! Ports for servers that a test starts more than once.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below those that the kernel hands out by itself.
const FIRST: u32 = 20_000;
const COUNT: u32 = 10_000;

/// An address of this machine that no socket gets by chance, so that a server can have it again after it has ended. No
/// two calls of a process get the same one.
pub fn lasting_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(number < COUNT, "all {COUNT} ports from {FIRST} on are taken");
        // Processes that run at the same time begin at different ports.
        let port = FIRST + (process::id().wrapping_mul(97).wrapping_add(number)) % COUNT;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port as u16));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_calls_get_the_same_address() {
        let (one, other) = (lasting_address(), lasting_address());
        assert_ne!(one, other);
        assert!((20_000..30_000).contains(&one.port()) && (20_000..30_000).contains(&other.port()));
    }
}
