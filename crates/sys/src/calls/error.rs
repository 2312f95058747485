//! The common error of all calls: the call and the kernel's errno.

use std::fmt;

/// A system call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallError {
    /// The system call, with its mode where that matters (`madvise(MADV_HUGEPAGE)`).
    pub call: &'static str,
    /// The kernel's error number.
    pub errno: i32,
}

/// The kind of an error, by how a caller should react.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallErrorKind {
    /// The kernel lacks the call (`ENOSYS`, `EOPNOTSUPP`): it never works here.
    Unsupported,
    /// The kernel or a container forbids it (`EPERM`, `EACCES`): it works with other rights.
    Refused,
    /// Memory or address space is used up (`ENOMEM`): it may work later, or for less.
    OutOfMemory,
    /// Anything else.
    Failed,
}

impl CallError {
    /// The error of a call that just returned -1.
    pub(super) fn last(call: &'static str) -> Self {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        Self { call, errno }
    }

    /// Its kind. `EINVAL` counts as failed: only the caller knows whether it means an unsupported mode or a wrong
    /// argument.
    pub fn kind(&self) -> CallErrorKind {
        match self.errno {
            libc::ENOSYS | libc::EOPNOTSUPP => CallErrorKind::Unsupported,
            libc::EPERM | libc::EACCES => CallErrorKind::Refused,
            libc::ENOMEM => CallErrorKind::OutOfMemory,
            _ => CallErrorKind::Failed,
        }
    }

    /// The errno's name, such as `EPERM`.
    pub fn errno_name(&self) -> &'static str {
        errno_name(self.errno)
    }
}

/// The name of an errno that the calls of this crate return; `errno` for any other.
pub fn errno_name(errno: i32) -> &'static str {
    match errno {
        libc::EPERM => "EPERM",
        libc::ENOENT => "ENOENT",
        libc::ESRCH => "ESRCH",
        libc::EINTR => "EINTR",
        libc::EIO => "EIO",
        libc::E2BIG => "E2BIG",
        libc::EBADF => "EBADF",
        libc::ECHILD => "ECHILD",
        libc::EAGAIN => "EAGAIN",
        libc::ENOMEM => "ENOMEM",
        libc::EACCES => "EACCES",
        libc::EFAULT => "EFAULT",
        libc::EBUSY => "EBUSY",
        libc::EEXIST => "EEXIST",
        libc::ENODEV => "ENODEV",
        libc::EINVAL => "EINVAL",
        libc::ENFILE => "ENFILE",
        libc::EMFILE => "EMFILE",
        libc::ENOSPC => "ENOSPC",
        libc::ENOSYS => "ENOSYS",
        libc::EOPNOTSUPP => "EOPNOTSUPP",
        libc::EOVERFLOW => "EOVERFLOW",
        libc::EHWPOISON => "EHWPOISON",
        _ => "errno",
    }
}

impl fmt::Display for CallError {
    /// `mbind: EPERM (Operation not permitted (os error 1))`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = std::io::Error::from_raw_os_error(self.errno);
        write!(f, "{}: {} ({text})", self.call, self.errno_name())
    }
}

impl std::error::Error for CallError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_errno_has_the_kind_that_tells_what_to_do() {
        for (errno, kind) in [
            (libc::ENOSYS, CallErrorKind::Unsupported),
            (libc::EOPNOTSUPP, CallErrorKind::Unsupported),
            (libc::EPERM, CallErrorKind::Refused),
            (libc::EACCES, CallErrorKind::Refused),
            (libc::ENOMEM, CallErrorKind::OutOfMemory),
            (libc::EINVAL, CallErrorKind::Failed),
            (libc::EFAULT, CallErrorKind::Failed),
        ] {
            assert_eq!(CallError { call: "mbind", errno }.kind(), kind, "{}", errno_name(errno));
        }
    }

    #[test]
    fn a_message_names_the_call_and_the_errno() {
        let message = CallError { call: "mbind", errno: libc::EPERM }.to_string();
        assert!(message.starts_with("mbind: EPERM (Operation not permitted"), "{message}");
    }
}
