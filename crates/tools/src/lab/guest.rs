//! `atoll lab guest`: what the lab's `init` runs inside the guest. Not for people, hence hidden.

use atoll_lab::guest;
use clap::Subcommand;

use crate::exit::{Ends, Exit};

/// Flags of `lab guest`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tell the counter which memory belongs to which node
    Calibrate,
}

/// Runs `lab guest`.
pub(super) fn run(args: &Args) -> Result<(), Ends> {
    match args.command {
        Command::Calibrate => calibrate(),
    }
}

fn calibrate() -> Result<(), Ends> {
    match guest::calibrate() {
        Ok(_) => Ok(()),
        Err(error) => {
            let message = format!("lab: the counter could not be calibrated: {error}");
            Err(Ends::with(Exit::Own, message))
        }
    }
}
