//! Notifications to a supervisor such as systemd; nothing is sent if there is none.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The environment variable with the supervisor's socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Notifies the supervisor that the server accepts clients.
pub fn tell_ready() {
    tell("READY=1");
}

/// Notifies the supervisor that the server is stopping.
pub fn tell_stopping() {
    tell("STOPPING=1");
}

fn tell(state: &str) {
    if let Some(socket) = env::var_os(SOCKET) {
        // A supervisor that does not listen is ignored.
        let _ = send(&socket, state);
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<usize> {
    let address = match socket.as_bytes() {
        // An abstract socket, which has no file.
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)
}
