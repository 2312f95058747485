//! `lab shell`: a prompt on an emulated machine.

use std::io::{IsTerminal, sink, stdin, stdout};
use std::time::Duration;

use atoll_lab::{RunRequest, Streams};

use super::machine::{Contents, GuestArgs, ends};
use crate::exit::{CommandError, Exit};
use crate::terminal;

/// An interactive shell has no timeout; a forgotten machine ends after a day.
const TIMEOUT: Duration = Duration::from_secs(86_400);

/// Arguments.
#[derive(clap::Args, Debug)]
pub(super) struct ShellArgs {
    #[command(flatten)]
    machine: GuestArgs,
    #[command(flatten)]
    contents: Contents,
}

/// Runs it.
pub(super) fn run(args: &ShellArgs) -> Result<(), CommandError> {
    let guest = args.machine.guest()?;
    let mut request = RunRequest::new(guest, Vec::new());
    args.contents.fill(&mut request);
    request.environment.extend(std::env::var_os("TERM").map(|term| ("TERM".into(), term)));
    request.timeout = TIMEOUT;
    if stdin().is_terminal() {
        terminal::say("booting; 'exit' or Ctrl-D powers off");
    }
    let streams = Streams { out: &mut stdout(), err: &mut sink() };
    match atoll_lab::run(&request, streams).map_err(ends)?.code {
        0 => Ok(()),
        code => Err(CommandError::quietly(Exit::Child(code))),
    }
}
