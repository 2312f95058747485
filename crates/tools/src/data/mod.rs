//! `data`: data directories of databases, without the SQL engine: their contents, whether all can be read,
//! a checkpoint of one that no server has open; `backup`: a copy of it; and `upgrade-check`: whether this version opens it.

mod report;
mod upgrade;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow};
use atoll_placement::{Arena, Kernel, LiveKernel};
use atoll_store::backup::{BackupError, BackupTarget, backup_directory};
use atoll_store::data_file::DataFileError;
use atoll_store::database::StoreEnvironment;
use atoll_store::durable::DurableDatabase;
use atoll_store::files::{FileErrorKind, Files, LiveFiles};
use atoll_store::open::{OpenError, OpenOptions, check_directory, directory_info, file_formats};
use atoll_topology::Bytes;
use clap::Subcommand;

use crate::exit::{CommandError, Exit};
use crate::topo::live;
use report::{CheckpointView, DirectoryView};
use upgrade::UpgradeView;

/// What `--help` shows.
pub const EXAMPLES: &str = "\
Examples:
  atoll data info shop            tables, rows, bytes, and how much of the log a checkpoint would save
  atoll data check shop           read everything and compare all checksums; ends with 1 on damage
  atoll data check shop --json    the same for programs
  atoll data checkpoint shop      apply the log, so that the next start is fast

A directory is locked while a command reads it, and refused while a database has it open.";

/// What `--help` of `upgrade-check` shows.
pub const UPGRADE_EXAMPLES: &str = "\
Examples:
  atoll upgrade-check shop           before another version of atoll is installed over the old one
  atoll upgrade-check shop --json    the same for programs

Run it with the new version. Nothing is locked and nothing is written, so a server may have the directory open.
The exit code is 1 if a file is in a format that this version does not read.";

/// Arguments of `backup`.
#[derive(clap::Args, Debug)]
pub struct BackupArgs {
    /// The data directory of a database that is closed
    #[arg(short = 'd', long, value_name = "DIR", env = "ATOLL_DATA")]
    pub data: PathBuf,
    /// The directory to make
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
}

/// Arguments.
#[derive(clap::Args, Debug)]
pub struct DataArgs {
    #[command(subcommand)]
    command: DataCommand,
}

/// What to do with a data directory.
#[derive(Debug, Subcommand)]
enum DataCommand {
    /// Read every file of a data directory and compare all checksums
    Check(DirectoryArgs),
    /// Show the contents of a data directory
    Info(DirectoryArgs),
    /// Apply the log to the tables and remove it
    Checkpoint(DirectoryArgs),
}

/// The directory and the output format.
#[derive(clap::Args, Debug)]
pub struct DirectoryArgs {
    /// The data directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &DataArgs) -> Result<(), CommandError> {
    match &args.command {
        DataCommand::Check(args) => check(args),
        DataCommand::Info(args) => {
            let info = directory_info(&open(&args.directory)?).map_err(failed(&args.directory))?;
            put(args, &DirectoryView::from_info(&info))
        }
        DataCommand::Checkpoint(args) => checkpoint(args),
    }
}

fn check(args: &DirectoryArgs) -> Result<(), CommandError> {
    let info = check_directory(&open(&args.directory)?).map_err(failed(&args.directory))?;
    let view = DirectoryView::checked(&info);
    put(args, &view)?;
    match info.damage.is_empty() {
        true => Ok(()),
        false => Err(CommandError::quietly(Exit::Statement)),
    }
}

fn checkpoint(args: &DirectoryArgs) -> Result<(), CommandError> {
    let files = open(&args.directory)?;
    let machine = Arc::new(live()?.machine);
    let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
    let arena = Arena::new(Arc::clone(&machine), kernel, None);
    let options = OpenOptions { create: false, ..OpenOptions::default() };
    let start = Instant::now();
    let environment = StoreEnvironment { machine, arena };
    let database =
        DurableDatabase::open(files, environment, options).map_err(failed(&args.directory))?;
    let open_seconds = start.elapsed().as_secs_f64();
    let made = database.checkpoint().map_err(anyhow::Error::from)?;
    let seconds = start.elapsed().as_secs_f64() - open_seconds;
    put(args, &CheckpointView::from_reports(database.report(), &made, open_seconds, seconds))
}

/// Copies a data directory.
pub fn backup(args: &BackupArgs) -> Result<(), CommandError> {
    let files = open(&args.data)?;
    let target = BackupTarget::create(&args.to).map_err(not_copied(&args.data))?;
    let report = backup_directory(&files, target.files()).map_err(not_copied(&args.data))?;
    target.finish().map_err(not_copied(&args.data))?;
    let (files, bytes, to) = (report.files, Bytes(report.bytes), args.to.display());
    crate::bench::put(None, &format!("{files} files ({bytes}) copied to {to} and checked\n"))
}

/// Says whether this version can open a data directory.
pub(crate) fn upgrade_check(args: &DirectoryArgs) -> Result<(), CommandError> {
    let formats = file_formats(&*open(&args.directory)?).map_err(failed(&args.directory))?;
    let view = UpgradeView::from_formats(&formats);
    put(args, &view)?;
    match view.can_open {
        true => Ok(()),
        false => Err(CommandError::quietly(Exit::Statement)),
    }
}

fn not_copied(directory: &Path) -> impl Fn(BackupError) -> CommandError + '_ {
    move |error| {
        match error {
        BackupError::Open(error) => failed(directory)(error),
        BackupError::File(DataFileError::File(error))
            if matches!(error.kind, FileErrorKind::Locked(_)) =>
        {
            anyhow!("{error}; to copy it while it runs: atoll backup --server, or BACKUP DATABASE TO 'directory' there")
                .into()
        }
        BackupError::Damaged(_) | BackupError::File(DataFileError::Damaged { .. }) => {
            CommandError::with(Exit::Statement, error)
        }
        error => CommandError::with(Exit::Own, error),
    }
    }
}

fn open(directory: &Path) -> Result<Arc<dyn Files>, CommandError> {
    let files = LiveFiles::open(directory).context("no data directory")?;
    Ok(Arc::new(files))
}

/// Damage is a finding of the check; other errors are failures of the command.
fn failed(directory: &Path) -> impl Fn(OpenError) -> CommandError + '_ {
    move |error| {
        let exit = if error.is_damage() { Exit::Statement } else { Exit::Own };
        CommandError::with(exit, format!("{}: {error}", directory.display()))
    }
}

fn put(
    args: &DirectoryArgs,
    view: &(impl serde::Serialize + std::fmt::Display),
) -> Result<(), CommandError> {
    let text = match args.json {
        true => crate::bench::json(view)?,
        false => view.to_string(),
    };
    crate::bench::put(None, &text)
}
