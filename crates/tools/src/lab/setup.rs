//! `lab setup`: requirements of the lab, which of them are here, and how to get the rest.

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;

use atoll_lab::setup::{FetchError, Requirement, RequirementKind, fetch, parts};
use atoll_lab::{Installation, data_directory};
use clap::ValueHint;

use crate::exit::{CommandError, Exit};
use crate::terminal;

/// What `--help` shows.
pub(super) const EXAMPLES: &str = "\
QEMU is installed by apt-get, which requires root. The kernel and busybox are Debian packages, downloaded
and unpacked into $ATOLL_DATA/lab, $XDG_DATA_HOME/atoll/lab or ~/.local/share/atoll/lab; nothing else of
the system is touched. On other systems install QEMU with the system's own packages
and give a kernel with --kernel or $ATOLL_KERNEL.";

/// Arguments.
#[derive(clap::Args, Debug)]
pub(super) struct SetupArgs {
    /// List the missing parts and their sizes; fetch nothing. Exit code 4 when the lab cannot boot
    #[arg(long)]
    dry_run: bool,
    /// Kernel to boot [default: $ATOLL_KERNEL, the fetched kernel, or one of /boot]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    kernel: Option<PathBuf>,
}

/// Runs it.
pub(super) fn run(args: &SetupArgs) -> Result<(), CommandError> {
    let installation = Installation::find(args.kernel.as_deref());
    let found = parts(&installation);
    write_parts(&found, &installation)?;
    let missing: Vec<RequirementKind> =
        found.iter().filter(|part| is_fetched(part)).map(|part| part.kind).collect();
    if !missing.is_empty() && !args.dry_run {
        fetch_all(&missing)?;
        return after(args);
    }
    verdict(&installation, args.dry_run)
}

/// Whether it is missing and can be fetched.
fn is_fetched(part: &Requirement) -> bool {
    part.found.is_none() && part.kind != RequirementKind::Plugin
}

fn write_parts(parts: &[Requirement], installation: &Installation) -> std::io::Result<()> {
    let mut out = stdout().lock();
    for part in parts {
        write!(out, "{:<8} ", part.kind.name())?;
        match (&part.found, &part.package) {
            (Some(path), _) => write!(out, "{}", path.display())?,
            (None, Some((package, size))) => {
                write!(out, "missing: package {package}")?;
                if let Some(size) = size {
                    write!(out, ", {:.1} MB to download", *size as f64 / 1e6)?;
                }
            }
            (None, None) => write!(out, "missing: needed for counting only; it comes with Atoll")?,
        }
        let version = installation.qemu_version().filter(|_| part.kind == RequirementKind::Qemu);
        writeln!(out, "{}", version.map(|it| format!(" (version {it})")).unwrap_or_default())?;
    }
    out.flush()
}

fn fetch_all(missing: &[RequirementKind]) -> Result<(), CommandError> {
    for &kind in missing {
        fetch(kind, &mut stderr()).map_err(without)?;
    }
    Ok(())
}

/// Looks again.
fn after(args: &SetupArgs) -> Result<(), CommandError> {
    let installation = Installation::find(args.kernel.as_deref());
    write_parts(&parts(&installation), &installation)?;
    verdict(&installation, false)
}

fn verdict(installation: &Installation, is_dry: bool) -> Result<(), CommandError> {
    let ready = installation.qemu().and(installation.kernel()).and(installation.busybox());
    match ready {
        Ok(_) => {
            terminal::say("the lab is ready; try: atoll lab run -m westmere-ex-4 -- uname -a");
            Ok(())
        }
        Err(missing) if is_dry => {
            let place = data_directory().map(|place| place.display().to_string());
            let place = place.unwrap_or_else(|error| error.to_string());
            let hint = format!("{missing} (fetched into {place} without --dry-run)");
            Err(CommandError::with(Exit::NotHere, anyhow::anyhow!(hint)))
        }
        Err(missing) => Err(CommandError::with(Exit::NotHere, missing)),
    }
}

fn without(error: FetchError) -> CommandError {
    let exit = match &error {
        FetchError::NotDebian { .. } | FetchError::NotRoot { .. } => Exit::NotHere,
        _ => Exit::Own,
    };
    CommandError::with(exit, error)
}
