//! Whether `cargo build` and `cargo test` compile the dependencies with the same features.
//!
//! A feature that only a dev-dependency asks for gives test builds a different tokio, arrow or
//! getrandom, and with it everything above: DataFusion would be compiled once for the binary and
//! once more for the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::cargo;

/// Sets of features a package is compiled with: several when build scripts need another one.
type Features = BTreeMap<String, BTreeSet<String>>;

/// Fails with the packages that tests compile again.
pub fn check(root: &Path) -> Result<()> {
    let build = features(root, "normal,build")?;
    let test = features(root, "normal,build,dev")?;
    let differences = differences(&build, &test);
    if differences.is_empty() {
        return Ok(());
    }
    bail!(
        "tests compile these packages, and all that depends on them, once more with other \
         features:\n{}\nname the features in [workspace.dependencies] and take the package as a \
         normal dependency of sql, or drop the dev-dependency that asks for them",
        differences.join("\n")
    )
}

fn features(root: &Path, edges: &str) -> Result<Features> {
    let output = cargo()
        .args(["tree", "--workspace", "--locked", "--edges", edges])
        .args(["--prefix", "none", "--format", "{p}|{f}"])
        .current_dir(root)
        .output()
        .context("cargo tree cannot be started")?;
    if !output.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Lines `package|features`, repeated ones marked with `(*)`.
fn parse(tree: &str) -> Features {
    let mut features = Features::new();
    for (package, set) in tree.lines().filter_map(|line| line.split_once('|')) {
        let set = set.trim_end_matches("(*)").trim();
        features.entry(package.to_owned()).or_default().insert(set.to_owned());
    }
    features
}

/// Packages that the build compiles in a way that no test does, one line each.
fn differences(build: &Features, test: &Features) -> Vec<String> {
    let none = BTreeSet::new();
    let lines = build.iter().filter_map(|(package, sets)| {
        let in_tests = test.get(package).unwrap_or(&none);
        let built: Vec<&str> = sets.difference(in_tests).map(String::as_str).collect();
        let tested: Vec<&str> = in_tests.difference(sets).map(String::as_str).collect();
        (!built.is_empty()).then(|| {
            format!(
                "  {package}: built with [{}], tested with [{}]",
                built.join("; "),
                tested.join("; ")
            )
        })
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::{differences, parse};

    #[test]
    fn a_feature_that_only_tests_enable_is_reported() {
        let build = parse("a v1|std\nb v1|\nc v1|x\n");
        let test =
            parse("a v1|std,sys_rng\na v1|std,sys_rng (*)\nb v1| (*)\nc v1|x\nc v1|x,y\nd v1|z\n");
        assert_eq!(
            differences(&build, &test),
            ["  a v1: built with [std], tested with [std,sys_rng]"]
        );
    }
}
