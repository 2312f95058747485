//! The example, as its readers compile and run it.

use atoll_testkit::{Need, skip};

use crate::compiler::{compile, crate_folder, printed, run};

fn example() -> std::path::PathBuf {
    crate_folder().join("examples/group.c")
}

/// What the example computes, by plain loops.
fn expected() -> (i64, i64) {
    let shop = |row: i64| if row % 1000 == 7 { 8 } else { row % 1000 };
    let total = (0..1_000_000).map(|row| row % 97).sum();
    let tax = (0..1_000_000).map(|row| row % 97 * (shop(row) % 3)).sum();
    (total, tax)
}

#[track_caller]
fn assert_right(text: &str) {
    let (total, tax) = expected();
    for line in [
        format!("999 shops sold for {total}"),
        format!("taxes: {tax}"),
        "Chur, month 1: 2 sales for 10.00, 10.00 each".into(),
        "Chur, month 2: 1 sales for 5.00, 5.00 each".into(),
        "Bern, month 1: 2 sales for 22.50, 11.25 each".into(),
        "idle: shop 7".into(),
        "an error: part 0, column 1, values: null pointer for 1000000 values".into(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line:?} is not in:\n{text}");
    }
    assert!(text.contains("why: local: "), "{text}");
}

#[test]
fn the_example_in_c_compiles_without_warnings_and_prints_what_plain_loops_compute() {
    let Some((output, binary)) = compile(&example(), "group", &[]) else { return };
    assert!(output.status.success(), "{}", printed(&output));
    let output = run(&binary);
    assert!(output.status.success(), "{}", printed(&output));
    assert_right(&printed(&output));
}

#[test]
fn address_sanitizer_finds_nothing_in_the_example() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let Some((output, binary)) = compile(&example(), "group-sanitized", &flags) else { return };
    if !output.status.success() && printed(&output).contains("san") {
        return skip(Need::CompilerSanitizers, printed(&output));
    }
    assert!(output.status.success(), "{}", printed(&output));
    let output = run(&binary);
    assert!(output.status.success(), "{}", printed(&output));
    assert_right(&printed(&output));
}
