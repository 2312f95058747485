//! Options of sockets.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::CallError;

/// Keep-alive settings: when a silent connection counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle seconds before the first probe.
    pub idle_s: u32,
    /// Seconds between probes.
    pub interval_s: u32,
    /// Unanswered probes after which the connection is lost.
    pub count: u32,
    /// Milliseconds for which sent data may stay unacknowledged.
    pub unacknowledged_ms: u32,
}

/// Makes the kernel detect that the peer of a TCP connection is gone.
#[doc(alias = "setsockopt")]
#[doc(alias = "SO_KEEPALIVE")]
#[doc(alias = "TCP_USER_TIMEOUT")]
pub fn set_keep_alive(socket: BorrowedFd<'_>, keep: KeepAlive) -> Result<(), CallError> {
    set(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, keep.idle_s)?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, keep.interval_s)?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, keep.count)?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, keep.unacknowledged_ms)
}

fn set(socket: BorrowedFd<'_>, level: i32, option: i32, value: u32) -> Result<(), CallError> {
    let (address, length) = ((&raw const value).cast(), size_of::<u32>() as libc::socklen_t);
    // SAFETY: the socket is open while it is borrowed, and the call reads `length` bytes of the value.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, address, length) } {
        0 => Ok(()),
        _ => Err(CallError::last("setsockopt")),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    fn get(socket: BorrowedFd<'_>, level: i32, option: i32) -> u32 {
        let (mut value, mut length) = (0_u32, size_of::<u32>() as libc::socklen_t);
        let address = (&raw mut value).cast();
        // SAFETY: the socket is open while it is borrowed, and the call writes at most `length` bytes.
        let done = unsafe {
            libc::getsockopt(socket.as_raw_fd(), level, option, address, &raw mut length)
        };
        assert_eq!(done, 0);
        value
    }

    #[test]
    fn a_connection_has_what_was_set() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("an address"));
        let stream = stream.expect("a connection");
        let keep = KeepAlive { idle_s: 7, interval_s: 3, count: 2, unacknowledged_ms: 9000 };
        set_keep_alive(stream.as_fd(), keep).expect("it is set");
        let tcp = |option| get(stream.as_fd(), libc::IPPROTO_TCP, option);
        assert_eq!(get(stream.as_fd(), libc::SOL_SOCKET, libc::SO_KEEPALIVE), 1);
        assert_eq!(tcp(libc::TCP_KEEPIDLE), 7);
        assert_eq!(tcp(libc::TCP_KEEPINTVL), 3);
        assert_eq!(tcp(libc::TCP_KEEPCNT), 2);
        assert_eq!(tcp(libc::TCP_USER_TIMEOUT), 9000);
    }
}
