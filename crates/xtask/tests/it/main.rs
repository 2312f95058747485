//! This repository obeys the house rules. The findings of each rule in a tree that breaks it are
//! tested next to the rules, in `src/tidy/tests.rs`.

use atoll_xtask::{repository_root, tidy};

#[test]
fn this_repository_is_tidy() {
    let report = tidy::run(&repository_root()).expect("the repository can be read");
    assert!(report.is_clean(), "\n{report}");
    assert!(report.files > 0, "tidy looked at nothing");
}
