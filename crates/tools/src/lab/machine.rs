//! Flags that choose a machine and its size, which `run` and `shell` share.

use std::ffi::OsString;
use std::path::PathBuf;

use atoll_lab::{DescribeError, Guest, GuestShape, LabError, MissingTool, RunRequest};
use atoll_topology::Bytes;
use clap::{ValueEnum, ValueHint};

use crate::exit::{CommandError, Exit};
use crate::terminal;
use crate::topo::which::MachineArgs;

/// The machine.
#[derive(clap::Args, Debug)]
pub(super) struct GuestArgs {
    #[command(flatten)]
    which: MachineArgs,
    /// Most cpus of a node [default: as many as make 16 on all nodes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255))]
    #[arg(help_heading = SIZE)]
    cpus: Option<u32>,
    /// Most cpus of a core; 1 leaves simultaneous multithreading out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255))]
    #[arg(help_heading = SIZE)]
    threads: Option<u32>,
    /// Memory of the largest node, others in proportion [default: 128 to 512 MiB, 4 GiB in all]
    #[arg(long, value_name = "SIZE", value_parser = memory, help_heading = SIZE)]
    memory: Option<Bytes>,
    /// Divide the sizes of modelled caches, to use them with smaller data
    #[arg(long, value_name = "K", default_value_t = 1, help_heading = SIZE)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65536))]
    cache_divisor: u32,
}

/// Additional settings of the guest.
#[derive(clap::Args, Debug)]
pub(super) struct Contents {
    /// Also pack a file or directory, with the libraries it needs; its path in the guest is the same
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, help_heading = CONTENTS)]
    with: Vec<PathBuf>,
    /// Set a variable of the program's environment, or pass on the one of this name
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = CONTENTS)]
    env: Vec<OsString>,
    /// Automatic NUMA balancing [default: as the kernel has it, which is on]
    #[arg(long, value_name = "on|off", value_enum, help_heading = CONTENTS)]
    balancing: Option<Switch>,
    /// Kernel to boot [default: $ATOLL_KERNEL, else what 'lab setup' fetched, else one of /boot]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = CONTENTS)]
    kernel: Option<PathBuf>,
    /// Additional options for the kernel's command line
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, help_heading = CONTENTS)]
    append: Vec<String>,
}

const SIZE: &str = "Size of the guest";
const CONTENTS: &str = "Contents of the guest";

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

impl GuestArgs {
    /// Cuts the machine; reports what was cut on stderr.
    pub(super) fn guest(&self) -> Result<Guest, CommandError> {
        let guest = self.guest_quietly()?;
        for note in guest.notes() {
            terminal::say(format_args!("note: {note}"));
        }
        Ok(guest)
    }

    /// The machine, cut.
    pub(super) fn guest_quietly(&self) -> Result<Guest, CommandError> {
        let chosen = self.which.chosen()?;
        Guest::try_from_knowledge(&chosen.known, &self.shape()).map_err(|error| ends(error.into()))
    }

    fn shape(&self) -> GuestShape {
        GuestShape {
            cpus_per_node: self.cpus,
            threads_per_core: self.threads,
            memory_per_node: self.memory,
            cache_divisor: self.cache_divisor,
        }
    }
}

impl Contents {
    /// Puts it into a request.
    pub(super) fn fill(&self, request: &mut RunRequest) {
        request.with.clone_from(&self.with);
        request.environment = self.env.iter().filter_map(variable).collect();
        request.balancing = self.balancing.map(|switch| switch == Switch::On);
        request.kernel.clone_from(&self.kernel);
        request.kernel_arguments.clone_from(&self.append);
    }
}

/// A variable, by default with its value here; None if it is not set here either.
fn variable(word: &OsString) -> Option<(OsString, OsString)> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = word.as_bytes();
    match bytes.iter().position(|&byte| byte == b'=') {
        Some(at) => {
            let (name, value) = (bytes[..at].to_vec(), bytes[at + 1..].to_vec());
            Some((OsString::from_vec(name), OsString::from_vec(value)))
        }
        None => Some((word.clone(), std::env::var_os(word)?)),
    }
}

fn memory(text: &str) -> Result<Bytes, String> {
    crate::bytes::parse(text).map_err(|error| error.to_string())
}

/// The exit code of a run that did not come to its end.
pub(super) fn ends(error: LabError) -> CommandError {
    let exit = match &error {
        LabError::Missing(MissingTool::KernelFile(_)) => Exit::Usage,
        LabError::Missing(_) => Exit::NotHere,
        LabError::Describe(DescribeError::TooMany { .. }) | LabError::NoTerminal => Exit::Usage,
        LabError::NotFound { .. } => Exit::NotFound,
        LabError::CannotRun { .. } | LabError::Library { .. } => Exit::CannotRun,
        LabError::TimedOut { .. } => Exit::TimedOut,
        LabError::Stopped { signal } => Exit::Child(128 + *signal as u8),
        LabError::Output(_) => {
            // Unlike other errors this one may be a reader that went away, which is not an error.
            return anyhow::Error::from(error).into();
        }
        _ => Exit::Own,
    };
    CommandError::with(exit, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_set_or_passed_on() {
        let pair = |name: &str, value: &str| Some((name.into(), value.into()));
        assert_eq!(variable(&"A=b=c".into()), pair("A", "b=c"));
        assert_eq!(variable(&"A=".into()), pair("A", ""));
        assert_eq!(variable(&"ATOLL_NO_SUCH_VARIABLE".into()), None);
    }
}
