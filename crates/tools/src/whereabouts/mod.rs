//! `where`.

use crate::exit::Ends;

/// What `--help` shows.
pub const EXAMPLES: &str = "";

/// Arguments.
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Runs it.
pub(crate) fn run(_: &Args) -> Result<(), Ends> {
    Ok(())
}
