//! `atoll lab guest`: what the lab's `init` runs inside the guest. Not for people, hence hidden.

use atoll_lab::guest;
use clap::Subcommand;

use crate::exit::{CommandError, Exit};

/// Flags of `lab guest`.
#[derive(Debug, clap::Args)]
pub(super) struct AgentArgs {
    #[command(subcommand)]
    command: GuestCommand,
}

#[derive(Debug, Subcommand)]
enum GuestCommand {
    /// Inform the counter which memory belongs to which node
    Calibrate,
}

/// Runs `lab guest`.
pub(super) fn run(args: &AgentArgs) -> Result<(), CommandError> {
    match args.command {
        GuestCommand::Calibrate => calibrate(),
    }
}

fn calibrate() -> Result<(), CommandError> {
    match guest::calibrate() {
        Ok(_) => Ok(()),
        Err(error) => {
            let message = format!("lab: the counter could not be calibrated: {error}");
            Err(CommandError::with(Exit::Own, message))
        }
    }
}
