//! What a supervisor such as systemd is told of the server; nothing where there is none.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable by which a supervisor says where it listens.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Tells that clients are answered.
pub fn tell_ready() {
    tell("READY=1");
}

/// Tells that the server stops.
pub fn tell_stopping() {
    tell("STOPPING=1");
}

fn tell(state: &str) {
    if let Some(socket) = env::var_os(SOCKET) {
        // A supervisor that does not listen is none.
        let _ = send(&socket, state);
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<usize> {
    let address = match socket.as_bytes() {
        // One that has no file.
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)
}
