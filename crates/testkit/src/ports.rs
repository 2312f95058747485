//! Ports for servers that a test starts more than once.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the kernel's ephemeral ports.
const FIRST: u32 = 20_000;
const COUNT: u32 = 10_000;

/// A local address outside the kernel's ephemeral ports, so that a server can reuse it after a restart. Each call of a
/// process returns a different one.
pub fn lasting_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(number < COUNT, "all {COUNT} ports from {FIRST} on are taken");
        // Concurrent processes begin at different ports.
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
