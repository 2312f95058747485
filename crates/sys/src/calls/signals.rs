//! Synchronous signals: blocked first, then taken one by one by [`wait_signal`]. There are no signal handlers.

use std::time::Duration;

use super::CallError;

/// Signals by the numbers of this platform.
pub mod signal {
    /// The terminal is gone.
    pub const HUP: i32 = libc::SIGHUP;
    /// Ctrl-C.
    pub const INT: i32 = libc::SIGINT;
    /// Ctrl-\.
    pub const QUIT: i32 = libc::SIGQUIT;
    /// Kills a process; cannot be caught.
    pub const KILL: i32 = libc::SIGKILL;
    /// The program's own meaning.
    pub const USR1: i32 = libc::SIGUSR1;
    /// The program's own meaning.
    pub const USR2: i32 = libc::SIGUSR2;
    /// Please end.
    pub const TERM: i32 = libc::SIGTERM;
    /// A child ended or stopped.
    pub const CHLD: i32 = libc::SIGCHLD;
    /// Continue.
    pub const CONT: i32 = libc::SIGCONT;
    /// Stop; cannot be ignored.
    pub const STOP: i32 = libc::SIGSTOP;
    /// Ctrl-Z.
    pub const TSTP: i32 = libc::SIGTSTP;
    /// The terminal has another size.
    pub const WINCH: i32 = libc::SIGWINCH;
}

/// The name of a signal of this platform, such as `SIGTERM`; `signal` for one without a name here.
pub fn signal_name(number: i32) -> &'static str {
    match number {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGSYS => "SIGSYS",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        _ => "signal",
    }
}

/// The signals a thread has blocked.
#[derive(Clone, Copy)]
pub struct SignalMask(pub(super) libc::sigset_t);

impl std::fmt::Debug for SignalMask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignalMask")
    }
}

/// A signal that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenSignal {
    /// Its number.
    pub number: i32,
    /// Whether a process sent it (`kill`); the terminal's keys and the kernel do not count.
    pub is_sent: bool,
}

/// Blocks signals in the calling thread and in the threads and processes it starts from now on, so
/// that they wait for [`wait_signal`]. Returns the mask as it was. A signal that is not of this
/// platform is passed over.
#[doc(alias = "pthread_sigmask")]
#[doc(alias = "SIG_BLOCK")]
pub fn block_signals(numbers: &[i32]) -> Result<SignalMask, CallError> {
    let set = set_of(numbers);
    let mut before = set_of(&[]);
    // SAFETY: both sets are initialised and outlive the call.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before) } {
        0 => Ok(SignalMask(before)),
        errno => Err(CallError { call: "rt_sigprocmask", errno }),
    }
}

/// Gives the calling thread a mask that [`block_signals`] returned.
#[doc(alias = "pthread_sigmask")]
#[doc(alias = "SIG_SETMASK")]
pub fn set_signal_mask(mask: SignalMask) -> Result<(), CallError> {
    // SAFETY: the set is initialised and outlives the call.
    match unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask.0, std::ptr::null_mut())
    } {
        0 => Ok(()),
        errno => Err(CallError { call: "rt_sigprocmask", errno }),
    }
}

/// Takes one of these blocked signals, waiting at most `timeout`; `None` when none came.
#[doc(alias = "sigtimedwait")]
pub fn wait_signal(numbers: &[i32], timeout: Duration) -> Result<Option<TakenSignal>, CallError> {
    let set = set_of(numbers);
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs().min(i32::MAX as u64) as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: all bits zero are a valid siginfo_t, which is plain integers and addresses.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the three arguments are initialised and outlive the call.
    match unsafe { libc::sigtimedwait(&raw const set, &raw mut info, &raw const timeout) } {
        -1 => match CallError::last("rt_sigtimedwait") {
            error if matches!(error.errno, libc::EAGAIN | libc::EINTR) => Ok(None),
            error => Err(error),
        },
        // The codes of kill, sigqueue and tgkill are zero or less, the kernel's own are above.
        number => Ok(Some(TakenSignal { number, is_sent: info.si_code <= 0 })),
    }
}

/// Whether the process ignores a signal, as `nohup` makes it ignore `SIGHUP`.
#[doc(alias = "sigaction")]
pub fn is_signal_ignored(number: i32) -> bool {
    // SAFETY: all bits zero are a valid sigaction, which is plain integers and addresses.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is set; the kernel writes the action, for which there is room.
    let result = unsafe { libc::sigaction(number, std::ptr::null(), &raw mut action) };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Resets a signal to its default action, also if a parent left it ignored. With `SIGCHLD` ignored, the exit status of
/// children is lost.
#[doc(alias = "sigaction")]
pub fn default_signal(number: i32) {
    // SAFETY: the default action runs no code of the process; an unknown number is refused.
    unsafe { libc::signal(number, libc::SIG_DFL) };
}

fn set_of(numbers: &[i32]) -> libc::sigset_t {
    // SAFETY: all bits zero are a valid sigset_t; sigemptyset then makes it the empty set.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours; an unknown number is refused and changes nothing.
    unsafe {
        libc::sigemptyset(&raw mut set);
        for number in numbers {
            libc::sigaddset(&raw mut set, *number);
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::gettid;

    #[test]
    fn a_blocked_signal_waits_to_be_taken_and_tells_that_it_was_sent() {
        let thread = std::thread::spawn(|| {
            let before = block_signals(&[signal::USR1]).unwrap();
            assert_eq!(wait_signal(&[signal::USR1], Duration::ZERO), Ok(None));
            // SAFETY: a signal to the calling thread, which has it blocked.
            unsafe {
                libc::syscall(libc::SYS_tgkill, libc::getpid(), gettid(), signal::USR1);
            }
            let taken = wait_signal(&[signal::USR1], Duration::from_secs(10)).unwrap();
            set_signal_mask(before).unwrap();
            taken
        });
        let taken = thread.join().unwrap();
        assert_eq!(taken, Some(TakenSignal { number: signal::USR1, is_sent: true }));
    }

    #[test]
    fn rust_programs_ignore_a_broken_pipe_and_what_their_parents_ignored() {
        assert!(is_signal_ignored(libc::SIGPIPE));
        assert!(!is_signal_ignored(signal::USR2));
        // SAFETY: no code runs for a signal that is ignored.
        unsafe { libc::signal(signal::WINCH, libc::SIG_IGN) };
        assert!(is_signal_ignored(signal::WINCH));
        default_signal(signal::WINCH);
        assert!(!is_signal_ignored(signal::WINCH));
    }

    #[test]
    fn a_signal_has_a_name() {
        assert_eq!(signal_name(signal::TERM), "SIGTERM");
        assert_eq!(signal_name(64), "signal");
    }
}
