//! Engines that no distribution has, built from the sources inside npm packages that wrapped them for Node.js.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use atoll_tools::exit::CommandError;
use atoll_tools::terminal;
use clap::Args;

use super::engine::EngineName;
use crate::cache;

/// Arguments of `atoll bench kv setup`.
#[derive(Args, Debug)]
pub(super) struct SetupArgs {
    /// Say what would be fetched and built, and where
    #[arg(long)]
    dry_run: bool,
}

/// An engine and its sources.
struct Source {
    engine: EngineName,
    /// npm's package and version.
    package: &'static str,
    /// Bytes of the package, about.
    megabytes: f64,
    /// The sources, below `package/deps/leveldb`.
    folder: &'static str,
    standard: &'static str,
    /// Further arguments of the compiler, for files below `package/deps/leveldb`.
    flags: &'static [&'static str],
}

const SOURCES: [Source; 2] = [
    Source {
        engine: EngineName::Hyperleveldb,
        package: "leveldown-hyper@2.0.0",
        megabytes: 0.7,
        folder: "leveldb-hyper-1.0.2",
        standard: "gnu++11",
        flags: &["-DHAVE_CONFIG_H", "-Ileveldb-hyper-conf/linux"],
    },
    Source {
        engine: EngineName::Basho,
        package: "leveldown-basho-andris@1.5.0-andris.6",
        megabytes: 0.8,
        folder: "leveldb-basho",
        standard: "gnu++98",
        flags: &[],
    },
];

/// Sources that belong to other systems, tests and tools.
const LEFT_OUT: [&str; 7] =
    ["android", "_test.", "_bench.", "main.", "_win.", "testutil", "testharness"];

/// Where built engines are.
pub(super) fn directory() -> Result<PathBuf> {
    Ok(cache::directory()?.join("kv"))
}

/// Whether an engine has been built.
pub(super) fn is_built(engine: EngineName) -> bool {
    let file = engine.library().map(|(file, _)| file);
    directory().ok().zip(file).is_some_and(|(directory, file)| directory.join(file).is_file())
}

/// Builds all, or says what it would do.
pub(super) fn run(args: &SetupArgs) -> Result<(), CommandError> {
    let directory = directory()?;
    let mut failed = Vec::new();
    for source in &SOURCES {
        let Source { engine, package, megabytes, .. } = source;
        let name = engine.name();
        terminal::say(format_args!(
            "{name}: npm package {package} ({megabytes} MB), built by c++ in {}",
            directory.display()
        ));
        if args.dry_run {
            continue;
        }
        match build(source, &directory) {
            Ok(()) => terminal::say(format_args!("{name}: ready")),
            Err(error) => failed.push(format!("{name}: {error:#}")),
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(anyhow::Error::msg(failed.join("\n")).into()),
    }
}

fn build(source: &Source, directory: &Path) -> Result<()> {
    let (file, _) = source.engine.library().context("an engine without a library")?;
    let make = |path: &Path| {
        fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
    };
    make(directory)?;
    let work =
        tempfile::tempdir_in(directory).context("cannot make a directory for the sources")?;
    let mut npm = Command::new("npm");
    npm.args(["pack", "--silent", source.package]).current_dir(work.path());
    ran(&mut npm, "npm cannot fetch the package (Debian needs the package npm)")?;
    let archive = only_file(work.path(), "tgz")?;
    let mut tar = Command::new("tar");
    tar.arg("xzf").arg(&archive).current_dir(work.path());
    ran(&mut tar, "tar cannot unpack the package")?;
    let sources = work.path().join("package/deps/leveldb");
    let built = work.path().join(file);
    let mut compiler = Command::new("c++");
    compiler.current_dir(&sources).args(["-shared", "-fPIC", "-O2", "-w", "-pthread"]);
    compiler.arg(format!("-std={}", source.standard));
    compiler.args(["-DOS_LINUX", "-DLEVELDB_PLATFORM_POSIX", "-DNDEBUG"]).args(source.flags);
    compiler.args([format!("-I{}", source.folder), format!("-I{}/include", source.folder)]);
    compiler.args(files(&sources, source.folder)?).arg("-o").arg(&built);
    ran(
        &mut compiler,
        "the compiler failed; its messages are above (Debian needs the package g++)",
    )?;
    // Renamed when it is whole, so that a build that was stopped leaves nothing that looks ready.
    fs::rename(&built, directory.join(file)).context("cannot keep the library")
}

/// The sources of a library, by their paths from `base`.
fn files(base: &Path, folder: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for part in ["db", "table", "util", "port", "leveldb_os"] {
        let directory = Path::new(folder).join(part);
        let Ok(entries) = fs::read_dir(base.join(&directory)) else { continue };
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let is_source = name.ends_with(".cc") || name.ends_with(".c");
            if is_source && !LEFT_OUT.iter().any(|it| name.contains(it)) {
                files.push(directory.join(name));
            }
        }
    }
    ensure!(!files.is_empty(), "the package holds no sources in {folder}");
    files.sort_unstable();
    Ok(files)
}

fn only_file(directory: &Path, suffix: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == suffix) {
            return Ok(path);
        }
    }
    bail!("npm left no package in {}", directory.display())
}

fn ran(command: &mut Command, failure: &str) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    ensure!(status.with_context(|| failure.to_owned())?.success(), "{failure}");
    Ok(())
}
