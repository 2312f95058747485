//! Connections that send garbage, half messages, or nothing.

use std::net::SocketAddr;
use std::time::Duration;

use atoll_sys::SplitMix64;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long a visitor waits for the server's answer.
const PATIENCE: Duration = Duration::from_millis(100);

/// Connects, misbehaves and leaves.
pub(super) async fn visit(address: SocketAddr, random: &mut SplitMix64) {
    let Ok(mut stream) = TcpStream::connect(address).await else { return };
    let _ = stream.write_all(&bytes(random)).await;
    let mut answer = [0; 256];
    let _ = tokio::time::timeout(PATIENCE, stream.read(&mut answer)).await;
}

fn bytes(random: &mut SplitMix64) -> Vec<u8> {
    let startup = b"\0\0\0\x1c\0\x03\0\0user\0ann\0database\0\0\0";
    match random.below(5) {
        // Garbage.
        0 => (0..random.below(4096)).map(|_| random.next() as u8).collect(),
        // Half of a first message, and one with a huge length.
        1 => startup[..random.below(startup.len() as u64) as usize].to_vec(),
        2 => b"\x7f\xff\xff\xff\0\x03\0\0".to_vec(),
        // Half of a statement, and garbage after a valid start.
        3 => [&startup[..], b"Q\0\0\x10\0SELECT"].concat(),
        _ => {
            let mut all = startup.to_vec();
            all.extend((0..64).map(|_| random.next() as u8));
            all
        }
    }
}
