//! `lab run`: a program on an emulated machine.

use std::ffi::OsString;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use atoll_lab::record::RunRecord;
use atoll_lab::{RunOutcome, RunRequest, Streams};
use atoll_model::Assumptions;
use atoll_simulation::Counting;
use atoll_sys::write_whole;
use clap::{ValueEnum, ValueHint};

use super::machine::{Contents, GuestArgs, ends};
use super::report::{RecordFormat, form_of};
use crate::exit::{CommandError, Exit};
use crate::terminal;

/// What `--help` shows.
pub(super) const EXAMPLES: &str = "\
Examples:
  atoll lab run -m westmere-ex-4 -- numactl -H
  atoll lab run -m symas-8 -- atoll bench memory --experiment 1
  atoll lab run -m intel-8 --report run.svg -- ./program input.bin
  atoll lab run -m epyc-2-nps4 --count off --with /usr/lib/python3 -- python3 script.py

The program is found on PATH, packed with its libraries and with those of its arguments that name
files, and runs as root in the same directory. Python and Java are packed with their standard library,
also where the name is a shim (pyenv, asdf); other packages and classes are given by --with. The exit code is the program's; 124 after --timeout.";

/// Arguments.
#[derive(clap::Args, Debug)]
pub(super) struct LabRunArgs {
    #[command(flatten)]
    machine: GuestArgs,
    #[command(flatten)]
    contents: Contents,
    /// Which loads and stores are counted: all of user space, those in regions that the program
    /// opens by markers, or none (faster)
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = CountArg::User)]
    count: CountArg,
    /// Write the counts to a file too: .json (for 'lab report' and 'lab compare'), .svg, .txt
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,
    /// Give the program this process's standard input; it is read to its end first
    #[arg(long)]
    stdin: bool,
    /// Stop after this time
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = crate::run::time)]
    timeout: Duration,
    /// Print QEMU's arguments for the machine; boot nothing
    #[arg(long)]
    dry_run: bool,
    /// The program and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    #[arg(allow_hyphen_values = true)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CountArg {
    /// Nothing
    Off,
    /// All of user space
    User,
    /// While a region is open
    Region,
    /// While a region is open; outside of regions the guest is hardly slowed down, and caches stand still
    Within,
}

impl CountArg {
    fn counting(self) -> Option<Counting> {
        match self {
            Self::Off => None,
            Self::User => Some(Counting::User),
            Self::Region => Some(Counting::Region),
            Self::Within => Some(Counting::Within),
        }
    }
}

/// Runs it.
pub(super) fn run(args: &LabRunArgs) -> Result<(), CommandError> {
    if let Some(file) = &args.report {
        // An unknown suffix is rejected before anything is booted.
        form_of(file)?;
        if args.count == CountArg::Off {
            let message = "--report needs something counted; leave --count off out";
            return Err(CommandError::with(Exit::Usage, message));
        }
    }
    let guest = args.machine.guest()?;
    if args.dry_run {
        return dry_run(&guest.qemu_arguments());
    }
    let mut request = RunRequest::new(guest, args.command.clone());
    args.contents.fill(&mut request);
    request.counting = args.count.counting();
    request.timeout = args.timeout;
    request.stdin = args.stdin.then(|| PathBuf::from("/dev/stdin"));
    let (mut out, mut err) = (stdout(), stderr());
    let streams = Streams { out: &mut out, err: &mut err };
    let outcome = atoll_lab::run(&request, streams).map_err(ends)?;
    for note in &outcome.notes {
        terminal::say(format_args!("note: {note}"));
    }
    deliver(args, &request, &outcome)?;
    match outcome.code {
        0 => Ok(()),
        code => Err(CommandError::quietly(Exit::Child(code))),
    }
}

/// Shows the counts on stderr, and writes them to the requested file.
fn deliver(
    args: &LabRunArgs,
    request: &RunRequest,
    outcome: &RunOutcome,
) -> Result<(), CommandError> {
    let record = RunRecord::try_from_outcome(request, outcome, &Assumptions::default());
    let Some(record) = record.map_err(anyhow::Error::from)? else { return Ok(()) };
    stderr().write_all(RecordFormat::Text.write(&record).as_bytes())?;
    if let Some(file) = &args.report {
        let text = form_of(file)?.write(&record);
        write_whole(file, text).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// The arguments, a flag with its value on each line, as a shell takes them.
fn dry_run(words: &[OsString]) -> Result<(), CommandError> {
    let mut out = stdout().lock();
    for pair in words.chunks(2) {
        let words: Vec<_> = pair.iter().map(|word| word.to_string_lossy()).collect();
        writeln!(out, "{}", words.join(" "))?;
    }
    Ok(())
}
