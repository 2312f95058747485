use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::atoll_in;

/// The files below a directory except the lock, with their contents.
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
    let error = run(&["--data", "nowhere", "--salvage"], "SELECT 1").failed(125);
    assert!(error.contains("nowhere"), "{error}");
    assert!(!home.path().join("nowhere").exists());
}

#[test]
fn macros_nested_types_and_computed_columns_are_there_when_a_directory_is_opened_again() {
    let home = tempfile::tempdir().unwrap();
    let run = |script: &str| {
        atoll_in(home.path(), &["sql", "--mode", "csv", "--data", "shop"], script).done()
    };
    run("CREATE MACRO share(part, whole := 100) AS 100.0 * part / whole;
         CREATE MACRO first_rows(n) AS TABLE SELECT * FROM range(n);
         CREATE TABLE nested(id INT, s STRUCT(x INT, y VARCHAR[]), l INT[][], m MAP(VARCHAR, INT),
                             d INT GENERATED ALWAYS AS (id * 2), t TIMESTAMPTZ);
         CREATE TYPE mood AS ENUM ('sad', 'ok');
         CREATE TABLE marked(ms mood[], o OID);
         INSERT INTO marked VALUES ('{ok,sad}', 7);
         INSERT INTO nested(id, s, l, m, t) VALUES
             (1, {'x': 7, 'y': ['a', NULL]}, [[1], [], NULL], MAP {'k': 5}, '2500-01-01 00:00:00+00'),
             (2, NULL, NULL, NULL, NULL);
         CREATE TABLE many AS SELECT i AS id, {'x': i, 'y': [i, NULL]} AS s FROM range(5000) r(i);
         CREATE VIEW shares AS SELECT share(id) AS part FROM nested;
         CREATE SEQUENCE numbers INCREMENT 5;
         SELECT nextval('numbers');
         ALTER SEQUENCE numbers RESTART WITH 100;
         COMMENT ON COLUMN nested.id IS 'its number';");
    for opened in ["after its log", "after a checkpoint"] {
        let rows = run("SELECT share(5), share(5, whole := 50);
                        SELECT count(*) AS n FROM first_rows(3);
                        SELECT id, s.x, s.y[1], l[1][1], m['k'], d, t FROM nested ORDER BY id;
                        SELECT sum(s.x) AS x, count(s.y[2]) AS y FROM many;
                        SELECT part FROM shares ORDER BY part;
                        SELECT nextval('numbers') >= 100 AS goes_on;
                        SELECT pg_typeof(ms) AS m, pg_typeof(o) AS o, ms > '{sad}' AS later FROM marked;
                        SELECT col_description('nested'::regclass, 1) AS said;
                        CHECKPOINT;");
        let wanted = "share(5),\"share(5, whole := 50)\"\n5.00000000000000,10.00000000000000\nn\n3\n\
                      id,x,s.y[1],l[1][1],m['k'],d,t\n\
                      1,7,a,1,5,2,2500-01-01 00:00:00+00\n2,,,,,4,\n\
                      x,y\n12497500,0\npart\n1.0000000000000000\n2.0000000000000000\ngoes_on\ntrue\nm,o,later\nmood[],oid,true\nsaid\nits number\n";
        assert_eq!(rows, wanted, "{opened}");
    }
    run("INSERT INTO nested(id) VALUES (30); DROP MACRO share;");
    assert_eq!(run("SELECT d FROM nested WHERE id = 30"), "d\n60\n");
}
