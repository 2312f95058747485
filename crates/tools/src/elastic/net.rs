//! `show-net`: the net as text or as a picture.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use atoll_elastic::decide::CorePolicy;
use atoll_elastic::net::{core_net, picture, written};
use atoll_sys::write_whole;
use atoll_topology::Machine;
use clap::ValueHint;

use crate::exit::{CommandError, Exit};

/// Arguments of `show-net`.
#[derive(clap::Args, Debug)]
pub(super) struct NetArgs {
    /// Write it to a file: .svg a picture, .txt the text
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &NetArgs) -> Result<(), CommandError> {
    let machine = Machine::discover().context("cannot discover this machine")?;
    let parameters = CorePolicy::default()
        .parameters(machine.cores.len())
        .map_err(|error| CommandError::with(Exit::Own, error))?;
    let net = core_net();
    let text = || written(&net, &|name| parameters.named(name));
    let Some(path) = &args.output else {
        std::io::stdout().write_all(text().as_bytes())?;
        return Ok(());
    };
    let file = match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("svg") => picture(&net),
        Some("txt") => text(),
        _ => {
            let message = format!("{}: expected a name that ends in .svg or .txt", path.display());
            return Err(CommandError::with(Exit::Usage, message));
        }
    };
    write_whole(path, file.as_bytes()).with_context(|| format!("{}", path.display()))?;
    Ok(())
}
