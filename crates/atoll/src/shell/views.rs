//! Files on the command line, as views named by their stems.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Shell;
use super::stop::Stop;
use atoll_tools::exit::{CommandError, Exit};

/// Extensions for the compression of a file, not its format.
const COMPRESSED: [&str; 4] = ["gz", "bz2", "xz", "zst"];

/// The statements that create a view for each file. View names are in lower case, so that queries need no quotes.
pub(super) fn statements(files: &[PathBuf]) -> Result<Vec<String>, CommandError> {
    let mut views: BTreeMap<String, &Path> = BTreeMap::new();
    let mut statements = Vec::with_capacity(files.len());
    for file in files {
        check(file)?;
        let name = name(file);
        if let Some(other) = views.insert(name.clone(), file) {
            let (other, file) = (other.display(), file.display());
            return Err(CommandError::with(
                Exit::Own,
                format!("{other} and {file} would both be the view '{name}'; rename one of them"),
            ));
        }
        statements.push(statement(&name, file));
    }
    Ok(statements)
}

fn check(file: &Path) -> Result<(), CommandError> {
    let shown = file.display();
    if file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("sql")) {
        let message = format!("{shown} is a script, not data; run it with -f {shown}");
        return Err(CommandError::with(Exit::Own, message));
    }
    match file.metadata() {
        Ok(_) => Ok(()),
        Err(error) => Err(CommandError::with(Exit::Own, format!("cannot read {shown}: {error}"))),
    }
}

fn name(file: &Path) -> String {
    let is_compressed = file.extension().is_some_and(|ending| {
        COMPRESSED.iter().any(|compressed| ending.eq_ignore_ascii_case(compressed))
    });
    let file = if is_compressed { file.with_extension("") } else { file.to_owned() };
    file.file_stem().unwrap_or_default().to_string_lossy().to_lowercase()
}

fn statement(name: &str, file: &Path) -> String {
    let name = name.replace('"', "\"\"");
    let file = file.to_string_lossy().replace('\'', "''");
    format!("CREATE VIEW \"{name}\" AS SELECT * FROM '{file}'")
}

impl Shell {
    pub(super) async fn create_view(&mut self, statement: &str) -> Result<(), Stop> {
        let mut bar = crate::progress::QueryBar::new(self.settings.progress);
        let created = self.session.run(statement);
        let created = self.interrupts.unless(&mut bar, None, created).await;
        bar.end();
        created?.map(drop).map_err(|error| Stop::sql(error, 1, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_named_by_the_stem_and_both_are_quoted() {
        let made = |file: &str| statement(&name(Path::new(file)), Path::new(file));
        assert_eq!(
            made("a/Sales.parquet"),
            r#"CREATE VIEW "sales" AS SELECT * FROM 'a/Sales.parquet'"#
        );
        assert_eq!(made("x.csv.gz"), r#"CREATE VIEW "x" AS SELECT * FROM 'x.csv.gz'"#);
        assert_eq!(
            made("it's \"a\".csv"),
            r#"CREATE VIEW "it's ""a""" AS SELECT * FROM 'it''s "a".csv'"#
        );
    }

    #[test]
    fn missing_files_scripts_and_two_files_of_one_stem_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, "a\n1\n").unwrap();
            path
        };
        let (csv, json, sql) = (file("a.csv"), file("A.json"), file("b.sql"));
        let message = |files: &[PathBuf]| statements(files).unwrap_err().message.unwrap();
        assert!(message(&[csv.clone(), json]).contains("would both be the view 'a'"));
        assert!(message(&[sql]).contains("run it with -f"));
        assert!(message(&[directory.path().join("none.csv")]).contains("cannot read"));
        assert_eq!(statements(&[csv]).unwrap().len(), 1);
    }
}
