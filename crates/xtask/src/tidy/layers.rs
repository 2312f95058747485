//! Crates import downward only. The table in ARCHITECTURE.md lists the layers; it is the text
//! that people read, so there is no second copy to go stale.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::source::markdown;
use super::{Check, SourceTree, TidyFinding};
use crate::tidy::source::manifest::CrateManifest;

const DOCUMENT: &str = "ARCHITECTURE.md";
/// Stands on its own line above the table.
pub(crate) const MARKER: &str = "<!-- layers: `cargo xtask tidy` reads this table -->";
const BECAUSE: &str = "a layer that knows only what is below can be read, tested and used alone";

pub(crate) struct Layers;

/// A row of the table: layer, crate, allowed imports.
struct LayerRow {
    line: usize,
    /// None for development crates, which only other development crates may import.
    layer: Option<u32>,
    imports: Imports,
}

/// The column "May import".
enum Imports {
    Nothing,
    /// Every crate of a layer with a smaller number.
    Below,
    /// Crates of these layers.
    Layers(RangeInclusive<u32>),
    Any,
}

type LayerRows<'a> = BTreeMap<&'a str, LayerRow>;

impl Check for Layers {
    fn name(&self) -> &'static str {
        "layers"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let crates = tree.crates();
        let (rows, mut findings) = read_rows(tree);
        findings.extend(unlisted(&crates, &rows));
        findings.extend(absent(&crates, &rows));
        let folders = folders_by_package(&crates);
        for (name, manifest) in &crates {
            findings.extend(missing_imports(manifest, &folders));
            findings.extend(upward_imports(name, manifest, &folders, &rows));
        }
        findings
    }
}

fn read_rows(tree: &SourceTree) -> (LayerRows<'_>, Vec<TidyFinding>) {
    let table = tree.text(DOCUMENT).and_then(|text| markdown::table_after(text, MARKER));
    let Some(table) = table else {
        let instead = format!("a table Layer | Crate | One line | May import under '{MARKER}'");
        return (
            LayerRows::new(),
            vec![finding(DOCUMENT, None, "has no table of layers".into(), instead)],
        );
    };
    let mut rows = LayerRows::new();
    let mut findings = Vec::new();
    for (line, cells) in table {
        match read_row(line, &cells) {
            Ok((name, row)) => drop(rows.insert(name, row)),
            Err(what) => findings.push(finding(
                DOCUMENT,
                Some(line),
                what,
                "layer: a number or 'dev'; may import: nothing, below, any, or layers such as 0–2"
                    .into(),
            )),
        }
    }
    (rows, findings)
}

fn read_row<'a>(line: usize, cells: &[&'a str]) -> Result<(&'a str, LayerRow), String> {
    let [layer, name, _, imports] = cells else {
        return Err(format!("a row of {} cells in the table of layers", cells.len()));
    };
    let layer = match *layer {
        "dev" => None,
        number => Some(number.parse().map_err(|_| format!("'{number}' is not a layer"))?),
    };
    let imports = read_imports(imports).ok_or(format!("invalid import rule '{imports}'"))?;
    Ok((name.trim_matches('`'), LayerRow { line, layer, imports }))
}

fn read_imports(text: &str) -> Option<Imports> {
    match text {
        "nothing" => Some(Imports::Nothing),
        "below" => Some(Imports::Below),
        "any" => Some(Imports::Any),
        range => {
            let (first, last) = range.split_once(['–', '-']).unwrap_or((range, range));
            Some(Imports::Layers(first.parse().ok()?..=last.parse().ok()?))
        }
    }
}

/// Whether a crate in `from` may import one in `to`.
fn may_import(from: &LayerRow, to: &LayerRow) -> bool {
    match (&from.imports, to.layer) {
        (Imports::Any, _) => true,
        (Imports::Nothing, _) | (_, None) => false,
        (Imports::Below, Some(layer)) => from.layer.is_none_or(|own| layer < own),
        (Imports::Layers(range), Some(layer)) => {
            range.contains(&layer) && from.layer.is_none_or(|own| layer < own)
        }
    }
}

fn unlisted(crates: &BTreeMap<&str, CrateManifest>, rows: &LayerRows<'_>) -> Vec<TidyFinding> {
    let crates = crates.iter().filter(|(name, _)| !rows.contains_key(**name));
    crates
        .map(|(name, manifest)| {
            let what = format!("crate '{name}' has no row in the table of layers");
            finding(&manifest.path, None, what, format!("add it to the table in {DOCUMENT}"))
        })
        .collect()
}

fn absent(crates: &BTreeMap<&str, CrateManifest>, rows: &LayerRows<'_>) -> Vec<TidyFinding> {
    let rows = rows.iter().filter(|(name, _)| !crates.contains_key(**name));
    rows.map(|(name, row)| {
        let what = format!("crate '{name}' does not exist");
        finding(DOCUMENT, Some(row.line), what, "the table lists the crates of today".into())
    })
    .collect()
}

fn folders_by_package<'a>(crates: &BTreeMap<&'a str, CrateManifest>) -> BTreeMap<String, &'a str> {
    let package = |manifest: &CrateManifest| manifest.value("package", "name").map(str::to_owned);
    crates.iter().filter_map(|(folder, manifest)| Some((package(manifest)?, *folder))).collect()
}

/// Dependencies named as Atoll's own that no crate answers to; dev-dependencies too.
fn missing_imports(manifest: &CrateManifest, folders: &BTreeMap<String, &str>) -> Vec<TidyFinding> {
    let own = manifest.dependencies().filter(|entry| entry.name().starts_with("atoll"));
    own.filter(|entry| !folders.contains_key(entry.name()))
        .map(|entry| {
            let what = format!("imports '{}', which is not a crate of the workspace", entry.name());
            finding(&manifest.path, Some(entry.line), what, "name a package of crates/".into())
        })
        .collect()
}

fn upward_imports(
    name: &str,
    manifest: &CrateManifest,
    folders: &BTreeMap<String, &str>,
    rows: &LayerRows<'_>,
) -> Vec<TidyFinding> {
    let Some(from) = rows.get(name) else { return Vec::new() };
    let imports = manifest.dependencies().filter(|entry| entry.is_normal_dependency());
    imports
        .filter_map(|entry| {
            let folder = *folders.get(entry.name())?;
            let to = rows.get(folder).filter(|to| !may_import(from, to))?;
            let what = format!("{name} ({}) imports {folder} ({})", place(from), place(to));
            let instead = "move what both need to a lower layer, or take it through a trait that \
                           the lower crate owns; tests may use a dev-dependency";
            Some(finding(&manifest.path, Some(entry.line), what, instead.into()))
        })
        .collect()
}

fn place(row: &LayerRow) -> String {
    row.layer.map_or("development".into(), |layer| format!("layer {layer}"))
}

fn finding(path: &str, line: Option<usize>, what: String, instead: String) -> TidyFinding {
    TidyFinding { path: path.to_owned(), line, what, instead, because: BECAUSE }
}
