//! Child processes: tying them to their parent, sending signals, and waiting for them with resource usage.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use super::{CallError, SignalMask};

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It returned this code.
    Code(u8),
    /// This signal ended it.
    Signal(i32),
}

/// An ended child, with the resource usage of it and of the children it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedChild {
    /// How it ended.
    pub ending: Ending,
    /// Time on cpus in user code.
    pub time_user: Duration,
    /// Time on cpus in the kernel.
    pub time_system: Duration,
    /// Faults served without a disk.
    pub faults_minor: u64,
    /// Faults that waited for a disk.
    pub faults_major: u64,
    /// Largest memory in use of a single process, in KiB.
    pub resident_kib_max: u64,
}

/// Makes a child receive this signal when the *thread* that starts it ends, and start with this mask. The thread that
/// calls [`Command::spawn`] must therefore live as long as the child.
#[doc(alias = "prctl")]
#[doc(alias = "PR_SET_PDEATHSIG")]
pub fn tie_to_parent(command: &mut Command, signal: i32, mask: SignalMask) {
    // SAFETY: the call takes nothing and cannot fail.
    let parent = unsafe { libc::getpid() };
    let prepare = move || {
        // SAFETY: plain integers; only the process that calls is changed.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal as libc::c_ulong) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above. The parent may have ended before it was tied to.
        if unsafe { libc::getppid() } != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        // SAFETY: the mask is initialised and outlives the call.
        match unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask.0, std::ptr::null_mut())
        } {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    };
    // SAFETY: between fork and exec the closure makes three async-signal-safe calls and touches no
    // memory but its own copy of the mask.
    unsafe { command.pre_exec(prepare) };
}

/// Makes a child inherit descriptors with the same numbers. They must stay open here until [`Command::spawn`]; a
/// program that takes paths opens `/proc/self/fd/N`.
#[doc(alias = "FD_CLOEXEC")]
pub fn pass_on(command: &mut Command, descriptors: &[BorrowedFd<'_>]) {
    let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let prepare = move || {
        for number in &numbers {
            // SAFETY: plain integers; only the process that calls is changed.
            if unsafe { libc::fcntl(*number, libc::F_SETFD, 0) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes async-signal-safe calls only and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

/// Sends a signal to a process.
#[doc(alias = "kill")]
pub fn kill_process(pid: i32, signal: i32) -> Result<(), CallError> {
    kill(pid, 1, signal)
}

/// Sends a signal to every process of a group.
#[doc(alias = "kill")]
pub fn kill_group(group: i32, signal: i32) -> Result<(), CallError> {
    kill(group, -1, signal)
}

/// Numbers below 2 mean all processes, the own group, or init: never what a caller here wants.
fn kill(number: i32, sign: i32, signal: i32) -> Result<(), CallError> {
    if number < 2 {
        return Err(CallError { call: "kill", errno: libc::EINVAL });
    }
    // SAFETY: plain integers; whom it may reach the kernel checks.
    match unsafe { libc::kill(sign * number, signal) } {
        0 => Ok(()),
        _ => Err(CallError::last("kill")),
    }
}

/// Reaps a child if it has ended. Does not block.
#[doc(alias = "wait4")]
pub fn ended_child(pid: i32) -> Result<Option<EndedChild>, CallError> {
    if pid < 2 {
        return Err(CallError { call: "wait4", errno: libc::EINVAL });
    }
    let mut status = 0;
    // SAFETY: all bits zero are a valid rusage, which is plain integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes the two structures, for which there is room.
    match unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) } {
        -1 => Err(CallError::last("wait4")),
        0 => Ok(None),
        _ => Ok(Some(ended(status, &usage))),
    }
}

fn ended(status: i32, usage: &libc::rusage) -> EndedChild {
    let time = |value: libc::timeval| {
        let micros = u64::try_from(value.tv_usec).unwrap_or(0);
        Duration::from_secs(u64::try_from(value.tv_sec).unwrap_or(0))
            + Duration::from_micros(micros)
    };
    let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
    let ending = match libc::WIFSIGNALED(status) {
        true => Ending::Signal(libc::WTERMSIG(status)),
        false => Ending::Code(libc::WEXITSTATUS(status) as u8),
    };
    EndedChild {
        ending,
        time_user: time(usage.ru_utime),
        time_system: time(usage.ru_stime),
        faults_minor: count(usage.ru_minflt),
        faults_major: count(usage.ru_majflt),
        resident_kib_max: count(usage.ru_maxrss),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::{block_signals, signal, wait_signal};

    fn wait_for(pid: i32) -> EndedChild {
        loop {
            if let Some(ended) = ended_child(pid).unwrap() {
                return ended;
            }
            let _ = wait_signal(&[signal::CHLD], Duration::from_millis(5));
        }
    }

    fn spawn(script: &str) -> i32 {
        let mask = block_signals(&[]).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        tie_to_parent(&mut command, signal::KILL, mask);
        command.spawn().unwrap().id() as i32
    }

    #[test]
    fn a_child_tells_its_code_its_faults_and_its_memory_once() {
        let pid = spawn("exit 7");
        let ended = wait_for(pid);
        assert_eq!(ended.ending, Ending::Code(7));
        assert!(ended.faults_minor > 0 && ended.resident_kib_max > 0, "{ended:?}");
        assert_eq!(ended_child(pid).unwrap_err().errno_name(), "ECHILD");
    }

    #[test]
    fn a_child_ended_by_a_signal_tells_which() {
        let pid = spawn("exec sleep 100");
        kill_process(pid, signal::TERM).unwrap();
        assert_eq!(wait_for(pid).ending, Ending::Signal(signal::TERM));
    }

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let pid = std::thread::spawn(|| spawn("exec sleep 100")).join().unwrap();
        assert_eq!(wait_for(pid).ending, Ending::Signal(signal::KILL));
    }

    #[test]
    fn all_processes_and_init_are_never_sent_a_signal() {
        for number in [i32::MIN, -1, 0, 1] {
            assert_eq!(kill_process(number, 0).unwrap_err().errno_name(), "EINVAL");
            assert_eq!(kill_group(number, 0).unwrap_err().errno_name(), "EINVAL");
            assert_eq!(ended_child(number).unwrap_err().errno_name(), "EINVAL");
        }
    }
}
