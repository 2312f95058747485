//! `completions` and `man`: what shells and `man` know of the commands, made from the flags themselves.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::ValueHint;
use clap_complete::Shell;

use crate::exit::CommandError;

/// Arguments of `completions`.
#[derive(clap::Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Arguments of `man`.
#[derive(clap::Args, Debug)]
pub struct ManArgs {
    /// Directory for the pages: atoll.1, atoll-topo.1 and so on
    #[arg(value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    directory: PathBuf,
}

/// Prints the completions of `command` for a shell.
///
/// # Errors
/// Standard output takes nothing.
pub fn completions(args: &CompletionsArgs, mut command: clap::Command) -> Result<(), CommandError> {
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut text);
    io::stdout().write_all(&text)?;
    Ok(())
}

/// Writes a page for `command` and one for each of its subcommands, however deep.
///
/// # Errors
/// A page cannot be written.
pub fn man(args: &ManArgs, command: clap::Command) -> Result<(), CommandError> {
    let directory = &args.directory;
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command.disable_help_subcommand(true), directory))
        .with_context(|| format!("{}: man pages cannot be written", directory.display()))?;
    Ok(())
}
