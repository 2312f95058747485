//! `package`: a Debian package of what `make install` installs, and whether it runs where nothing else is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::without_own_variables;
use crate::target_directory;

const HELP: &str = "\
cargo xtask package [--check]

Makes target/package/atoll_VERSION_ARCHITECTURE.deb of what `make install` installs and of the systemd units
in examples/. --check also unpacks it into an empty directory with the libraries that it depends on, and runs
it there, in separate namespaces; this requires root.";

/// Units of systemd, which the package installs.
const UNITS: &str = "examples/systemd";

/// Makes the package.
pub fn run(root: &Path, arguments: &[&str]) -> Result<ExitCode> {
    let check = match arguments {
        [] => false,
        ["--check"] => true,
        ["--help" | "-h"] => {
            println!("{HELP}");
            return Ok(ExitCode::SUCCESS);
        }
        other => bail!("package: unexpected '{}'\n\n{HELP}", other.join(" ")),
    };
    let directory = target_directory(root).join("package");
    let stage = directory.join("stage");
    if stage.exists() {
        fs::remove_dir_all(&stage).context("the files of the last package")?;
    }
    fs::create_dir_all(&stage).with_context(|| format!("cannot make {}", stage.display()))?;
    let installed = format!("DESTDIR={}", stage.display());
    done(
        without_own_variables(Command::new("make"))
            .args(["install", "PREFIX=/usr", &installed])
            .current_dir(root),
    )?;
    add_files(root, &stage)?;
    let control = Control::for_stage(root, &stage)?;
    let package = directory.join(format!("atoll_{}_{}.deb", control.version, control.architecture));
    control.write(&stage)?;
    let mut build = Command::new("dpkg-deb");
    done(build.args(["--root-owner-group", "--build"]).arg(&stage).arg(&package))?;
    println!("package: {}", package.display());
    if check {
        runs_alone(&package, &directory.join("alone"))?;
        println!("package: it runs with its dependencies alone");
    }
    Ok(ExitCode::SUCCESS)
}

/// Units, licence, changes and the example of settings.
fn add_files(root: &Path, stage: &Path) -> Result<()> {
    let units = stage.join("usr/lib/systemd/system");
    let documents = stage.join("usr/share/doc/atoll");
    for directory in [&units, &documents] {
        fs::create_dir_all(directory)?;
    }
    for unit in fs::read_dir(root.join(UNITS)).context(UNITS)? {
        let unit = unit?;
        fs::copy(unit.path(), units.join(unit.file_name()))?;
    }
    for (file, name) in [
        ("LICENSE", "copyright"),
        ("CHANGELOG.md", "CHANGELOG.md"),
        ("examples/atoll.toml", "atoll.toml"),
    ] {
        fs::copy(root.join(file), documents.join(name)).with_context(|| file.to_owned())?;
    }
    Ok(())
}

/// What dpkg has to know.
struct Control {
    version: String,
    architecture: String,
    glibc: String,
    kilobytes: u64,
}

impl Control {
    fn for_stage(root: &Path, stage: &Path) -> Result<Self> {
        let manifest = fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
        let version = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
        let version = version.and_then(|rest| rest.split('"').next()).context("no version")?;
        let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
        let symbols = output(Command::new("objdump").arg("-T").arg(stage.join("usr/bin/atoll")))?;
        Ok(Self {
            version: version.to_owned(),
            architecture: architecture.trim().to_owned(),
            glibc: newest_glibc(&symbols).context("atoll asks for no glibc")?,
            kilobytes: bytes_below(stage)?.div_ceil(1024),
        })
    }

    fn write(&self, stage: &Path) -> Result<()> {
        let Self { version, architecture, glibc, kilobytes } = self;
        let text = format!(
            "Package: atoll\nVersion: {version}\nArchitecture: {architecture}\nSection: database\n\
             Priority: optional\nMaintainer: The Atoll maintainers <maintainers@localhost>\n\
             Installed-Size: {kilobytes}\nDepends: libc6 (>= {glibc}), libgcc-s1\n\
             Description: NUMA-aware in-memory database and toolkit\n \
             A SQL database whose tables and workers stay on the nodes of a machine, a server for\n \
             PostgreSQL's clients, and tools that place, watch and measure other programs.\n"
        );
        let directory = stage.join("DEBIAN");
        fs::create_dir_all(&directory)?;
        Ok(fs::write(directory.join("control"), text)?)
    }
}

/// The newest version of glibc whose symbols `objdump -T` lists.
fn newest_glibc(symbols: &str) -> Option<String> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.');
        let numbers = rest[..end.unwrap_or(rest.len())].split('.').map(str::parse::<u32>);
        numbers.collect::<Result<Vec<u32>, _>>().ok()
    });
    let newest = versions.max()?;
    Some(newest.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
}

fn bytes_below(directory: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { bytes_below(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

/// Unpacks the package next to the libraries that it depends on, and runs it there.
fn runs_alone(package: &Path, alone: &Path) -> Result<()> {
    if alone.exists() {
        fs::remove_dir_all(alone).context("the files of the last check")?;
    }
    for directory in ["proc", "sys", "tmp", "dev"] {
        fs::create_dir_all(alone.join(directory))?;
    }
    done(Command::new("dpkg-deb").arg("--extract").arg(package).arg(alone))?;
    for library in libraries(&alone.join("usr/bin/atoll"))? {
        let copy = alone.join(library.strip_prefix("/").unwrap_or(&library));
        fs::create_dir_all(copy.parent().context("a library lies in a directory")?)?;
        fs::copy(&library, &copy).with_context(|| library.display().to_string())?;
    }
    let script = "mount --rbind /proc \"$0/proc\" && mount --rbind /sys \"$0/sys\" && exec chroot \"$0\" \"$@\"";
    for (program, arguments, wanted) in [
        ("/usr/bin/atoll", &["--version"][..], "atoll "),
        ("/usr/bin/atoll-bench", &["--version"], "atoll-bench "),
        ("/usr/bin/atoll-tools", &["--version"], "atoll"),
        ("/usr/bin/atoll", &["sql", "--csv", "-c", "SELECT 6 * 7 AS answer"], "answer\n42"),
    ] {
        let mut run = Command::new("unshare");
        run.args(["--mount", "--pid", "--fork", "sh", "-c", script]).arg(alone);
        let text = output(
            run.arg(program)
                .args(arguments)
                .env_clear()
                .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin"),
        )?;
        ensure!(text.contains(wanted), "{program} {} said '{text}'", arguments.join(" "));
    }
    Ok(())
}

/// Files of the libraries that a program is linked with, the loader among them.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let text = output(Command::new("ldd").arg(program))?;
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(words.map(|word| PathBuf::from(word.trim_end_matches(':'))).collect())
}

fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().display().to_string();
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{name} does not start"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed: {}", errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn done(command: &mut Command) -> Result<()> {
    output(command).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::newest_glibc;

    #[test]
    fn versions_are_compared_as_numbers() {
        let symbols = "0 DF *UND* (GLIBC_2.2.5) read\n0 DF *UND* (GLIBC_2.34) open\n0 (GLIBC_2.4) x\n0 (GLIBC_PRIVATE) y";
        assert_eq!(newest_glibc(symbols), Some("2.34".to_owned()));
        assert_eq!(newest_glibc("nothing"), None);
    }
}
