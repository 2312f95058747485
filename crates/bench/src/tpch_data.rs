//! The data: one Parquet file a table, written once, loaded by every engine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use atoll_sql::tpch::TABLES;
use serde::{Deserialize, Serialize};

/// Rows of a row group: DuckDB's own choice. Every engine splits a file between row groups, so that
/// more and smaller ones keep all its threads busy while it loads.
pub(crate) const ROW_GROUP_ROWS: usize = 122_880;

/// Describes a directory; written last, so a directory that has it is complete.
const DESCRIPTION: &str = "data.json";

/// Description of a data directory.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Description {
    scale_factor: f64,
    /// Version of Atoll that wrote it.
    atoll: String,
}

/// The tables with their files, smallest first.
pub(crate) fn files(directory: &Path) -> impl Iterator<Item = (&'static str, String)> {
    TABLES.into_iter().map(move |table| {
        let file = directory.join(format!("{table}.parquet"));
        (table, file.to_string_lossy().into_owned())
    })
}

/// The primary key of a table: the order of its rows in the file, which is the generator's.
pub(crate) fn key(table: &str) -> Option<&'static str> {
    Some(match table {
        "region" => "r_regionkey",
        "nation" => "n_nationkey",
        "supplier" => "s_suppkey",
        "customer" => "c_custkey",
        "part" => "p_partkey",
        "partsupp" => "ps_partkey, ps_suppkey",
        "orders" => "o_orderkey",
        "lineitem" => "l_orderkey, l_linenumber",
        _ => return None,
    })
}

/// Where data of a scale factor lies unless the user says otherwise.
pub(crate) fn directory_default(cache: &Path, scale_factor: f64) -> PathBuf {
    cache.join(format!("tpch-sf{scale_factor}"))
}

/// Whether the directory holds all files of this scale factor. One that is missing or empty does
/// not.
///
/// # Errors
/// When it holds something else: nothing there is overwritten.
pub(crate) fn is_complete(directory: &Path, scale_factor: f64) -> Result<bool> {
    if entries(directory)? == 0 {
        return Ok(false);
    }
    let file = directory.join(DESCRIPTION);
    let description = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "{} is neither empty nor made by atoll bench tpch (it has no {DESCRIPTION}); name another \
             directory with --data",
            directory.display()
        ),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    let found: Description = serde_json::from_str(&description)
        .with_context(|| format!("{} is not as atoll bench tpch writes it", file.display()))?;
    ensure!(
        found.scale_factor == scale_factor,
        "{} holds scale factor {}, not {scale_factor}; name another directory with --data",
        directory.display(),
        found.scale_factor
    );
    Ok(true)
}

fn entries(directory: &Path) -> Result<usize> {
    match fs::read_dir(directory) {
        Ok(entries) => Ok(entries.count()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error).with_context(|| format!("cannot list {}", directory.display())),
    }
}

/// Lets `write` fill a temporary directory, then renames it to `directory`.
pub(crate) fn make(
    directory: &Path,
    scale_factor: f64,
    write: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let mut name = directory.file_name().context("--data names no directory")?.to_os_string();
    name.push(format!(".partial-{}", std::process::id()));
    let partial = directory.with_file_name(name);
    let made = fill(&partial, scale_factor, write).and_then(|()| {
        fs::rename(&partial, directory)
            .with_context(|| format!("cannot move the data to {}", directory.display()))
    });
    if made.is_err() {
        // The error that led here is the one to report.
        let _ = fs::remove_dir_all(&partial);
    }
    made
}

fn fill(partial: &Path, scale_factor: f64, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    fs::create_dir_all(partial)
        .with_context(|| format!("cannot make the directory {}", partial.display()))?;
    write(partial)?;
    let description = Description { scale_factor, atoll: env!("CARGO_PKG_VERSION").to_owned() };
    let file = partial.join(DESCRIPTION);
    fs::write(&file, serde_json::to_string(&description)?)
        .with_context(|| format!("cannot write {}", file.display()))
}

/// Reads every file once, so that no engine pays for the disk; bytes in all.
pub(crate) fn warm(directory: &Path) -> Result<u64> {
    let read = |file: &String| {
        let mut file = fs::File::open(file)?;
        io::copy(&mut file, &mut io::sink())
    };
    let sizes = files(directory).map(|(_, file)| {
        read(&file).with_context(|| format!("cannot read {file}, which the benchmark loads"))
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_appears_as_a_whole_or_not_at_all() {
        let place = tempfile::tempdir().expect("a directory");
        let data = place.path().join("sf1");
        assert!(!is_complete(&data, 1.0).expect("missing is not complete"));
        make(&data, 1.0, |_| bail!("disk full")).expect_err("the error is passed on");
        assert_eq!(entries(place.path()).expect("a listing"), 0, "no temporary file is left");
        make(&data, 1.0, |partial| Ok(fs::write(partial.join("a"), "b")?)).expect("it is made");
        assert!(is_complete(&data, 1.0).expect("complete"));
    }

    #[test]
    fn data_of_another_scale_or_of_other_programs_is_refused() {
        let place = tempfile::tempdir().expect("a directory");
        let data = place.path().join("sf1");
        make(&data, 1.0, |_| Ok(())).expect("it is made");
        let error = is_complete(&data, 10.0).expect_err("another scale factor").to_string();
        assert!(error.contains("holds scale factor 1, not 10"), "{error}");
        let error = is_complete(place.path(), 1.0).expect_err("not ours").to_string();
        assert!(error.contains("neither empty nor made by atoll bench tpch"), "{error}");
    }

    #[test]
    fn every_table_has_a_file_and_a_key() {
        let tables: Vec<_> = files(Path::new("d")).collect();
        assert_eq!(tables.len(), 8);
        assert!(tables.iter().all(|(table, file)| {
            key(table).is_some() && *file == format!("d/{table}.parquet")
        }));
    }
}
