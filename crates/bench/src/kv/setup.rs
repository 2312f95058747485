//! Engines that no distribution has, built from the sources inside packages that wrap them for other languages.

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

/// Who has a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registry {
    Npm,
    Pypi,
}

/// An engine and its sources.
struct Source {
    engine: EngineName,
    registry: Registry,
    /// The package and its version, as the registry's client takes it.
    package: &'static str,
    /// Size of the package, about.
    megabytes: f64,
    /// Where the compiler runs, in the unpacked package.
    base: &'static str,
    /// Folder of a LevelDB below it; or, for libmdbx, its only source.
    sources: &'static str,
    compiler: &'static str,
    flags: &'static [&'static str],
}

const SOURCES: [Source; 3] = [
    Source {
        engine: EngineName::Hyperleveldb,
        registry: Registry::Npm,
        package: "leveldown-hyper@2.0.0",
        megabytes: 0.7,
        base: "package/deps/leveldb",
        sources: "leveldb-hyper-1.0.2",
        compiler: "c++",
        flags: &[
            "-std=gnu++11",
            "-DOS_LINUX",
            "-DLEVELDB_PLATFORM_POSIX",
            "-DHAVE_CONFIG_H",
            "-Ileveldb-hyper-conf/linux",
            "-Ileveldb-hyper-1.0.2",
            "-Ileveldb-hyper-1.0.2/include",
        ],
    },
    Source {
        engine: EngineName::Basho,
        registry: Registry::Npm,
        package: "leveldown-basho-andris@1.5.0-andris.6",
        megabytes: 0.8,
        base: "package/deps/leveldb",
        sources: "leveldb-basho",
        compiler: "c++",
        flags: &[
            "-std=gnu++98",
            "-DOS_LINUX",
            "-DLEVELDB_PLATFORM_POSIX",
            "-Ileveldb-basho",
            "-Ileveldb-basho/include",
        ],
    },
    Source {
        engine: EngineName::Libmdbx,
        registry: Registry::Pypi,
        package: "clibmdbx==1.0.4",
        megabytes: 0.7,
        base: "clibmdbx-1.0.4/vendor/libmdbx",
        sources: "mdbx.c",
        compiler: "cc",
        flags: &["-std=gnu11", "-DMDBX_BUILD_SHARED_LIBRARY=1", "-DLIBMDBX_EXPORTS=1"],
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
    directory()
        .ok()
        .zip(file(engine))
        .is_some_and(|(directory, file)| directory.join(file).is_file())
}

/// The name of a built library.
fn file(engine: EngineName) -> Option<&'static str> {
    engine.library()?.0.first().copied()
}

/// Builds all, or says what it would do.
pub(super) fn run(args: &SetupArgs) -> Result<(), CommandError> {
    let directory = directory()?;
    let mut failed = Vec::new();
    for source in &SOURCES {
        let Source { engine, registry, package, megabytes, compiler, .. } = source;
        let (name, from) = (engine.name(), registry.name());
        terminal::say(format_args!(
            "{name}: {from} package {package} ({megabytes} MB), built by {compiler} in {}",
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
    let file = file(source.engine).context("an engine without a library")?;
    let make = |path: &Path| {
        fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
    };
    make(directory)?;
    let work =
        tempfile::tempdir_in(directory).context("cannot make a directory for the sources")?;
    source.registry.fetch(source.package, work.path())?;
    let mut tar = Command::new("tar");
    let archive = archive(work.path())?;
    tar.arg("xzf").arg(&archive).current_dir(work.path());
    ran(&mut tar, "tar cannot unpack the package")?;
    let (base, built) = (work.path().join(source.base), work.path().join(file));
    let mut compiler = Command::new(source.compiler);
    compiler.current_dir(&base).args(["-shared", "-fPIC", "-O2", "-DNDEBUG", "-w", "-pthread"]);
    compiler.args(source.flags).args(files(&base, source.sources)?).arg("-o").arg(&built);
    ran(
        &mut compiler,
        "the compiler failed; its messages are above (Debian needs the package g++)",
    )?;
    // Renamed when it is whole, so that a build that was stopped leaves nothing that looks ready.
    fs::rename(&built, directory.join(file)).context("cannot keep the library")
}

impl Registry {
    fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "PyPI",
        }
    }

    /// Downloads a package into a directory, by the registry's own client.
    fn fetch(self, package: &str, directory: &Path) -> Result<()> {
        let (program, arguments, needs): (_, &[&str], _) = match self {
            Self::Npm => ("npm", &["pack", "--silent"], "npm"),
            Self::Pypi => (
                "python3",
                &["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"],
                "python3-pip",
            ),
        };
        let mut command = Command::new(program);
        command.args(arguments).arg(package).current_dir(directory);
        let name = self.name();
        ran(&mut command, &format!("{name} has no {package} (Debian needs the package {needs})"))
    }
}

/// The sources of a library, by their paths from `base`: a file, or those in the folders of a LevelDB.
fn files(base: &Path, folder: &str) -> Result<Vec<PathBuf>> {
    if base.join(folder).is_file() {
        return Ok(vec![folder.into()]);
    }
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

/// The package in a directory, of which it is the only one.
fn archive(directory: &Path) -> Result<PathBuf> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "tgz" || it == "gz") {
            return Ok(path);
        }
    }
    bail!("no package came into {}", directory.display())
}

fn ran(command: &mut Command, failure: &str) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    ensure!(status.with_context(|| failure.to_owned())?.success(), "{failure}");
    Ok(())
}
