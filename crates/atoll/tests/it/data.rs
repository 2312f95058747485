use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::atoll_in;

/// The files below a directory but the lock, with what they hold.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false if path.ends_with("lock") => {}
            false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    found
}

#[test]
fn what_is_left_of_a_damaged_directory_can_be_read_and_nothing_is_written() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str], script: &str| {
        let line = [&["sql", "--mode", "csv"], arguments].concat();
        atoll_in(home.path(), &line, script)
    };
    let made = "CREATE TABLE lost AS SELECT value AS n FROM generate_series(1, 20000);\n\
                CREATE TABLE kept AS SELECT value AS n FROM generate_series(1, 300);\n\
                INSERT INTO lost VALUES (7);";
    run(&["--data", "shop"], made).done();
    let shop = home.path().join("shop");
    let chunks =
        files(&shop).into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "chunk"));
    let (chunk, mut bytes) = chunks.max_by_key(|(_, bytes)| bytes.len()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&chunk, bytes).unwrap();
    let name = format!("chunks/{}", chunk.file_name().unwrap().to_str().unwrap());

    let refused = run(&["--data", "shop"], "SELECT 1;").failed(125);
    assert!(refused.contains(&name) && refused.contains("--salvage"), "{refused}");

    let before = files(&shop);
    let read = "SELECT count(*) AS n FROM kept;\nSELECT count(*) AS n FROM lost;";
    let ran = run(&["--data", "shop", "--salvage"], read);
    assert!(ran.err.contains("missing: ") && ran.err.contains(&name), "{ran:?}");
    assert!(ran.err.contains("lost"), "the table is named: {ran:?}");
    assert_eq!(ran.done(), "n\n300\nn\n1\n");
    let opened = run(&[], &format!(".open shop --salvage\n{read}"));
    assert!(opened.err.contains(&name), "{opened:?}");
    assert_eq!(opened.done(), "n\n300\nn\n1\n");
    for change in [
        "INSERT INTO kept VALUES (1)",
        "INSERT INTO kept SELECT n FROM kept",
        "DELETE FROM kept",
        "CREATE TABLE more AS SELECT 1 AS n",
        "DROP TABLE kept",
        "CHECKPOINT",
        "SET atoll.durability = 'async'",
    ] {
        let error = run(&["--data", "shop", "--salvage"], change).failed(1);
        assert!(error.contains("read-only") || error.contains("only be read"), "{change}: {error}");
    }
    assert!(files(&shop) == before, "salvaging writes nothing");

    let error = run(&["--salvage"], "SELECT 1").failed(2);
    assert!(error.contains("--data"), "{error}");
    run(&["--data", "nowhere", "--salvage"], "SELECT 1").failed(125);
    assert!(!home.path().join("nowhere").exists());
}
