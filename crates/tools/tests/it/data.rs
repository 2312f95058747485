//! `data`: reports on a data directory, sound and damaged.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use atoll_placement::{Arena, Kernel, LiveKernel};
use atoll_store::database::StoreEnvironment;
use atoll_store::durable::DurableDatabase;
use atoll_store::files::LiveFiles;
use atoll_store::open::OpenOptions;
use atoll_testkit::machines;

use crate::support::{tools, tools_in};

fn database(directory: &Path) -> DurableDatabase {
    let machine = Arc::new(machines::one_node());
    let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
    let environment =
        StoreEnvironment { arena: Arena::new(Arc::clone(&machine), kernel, None), machine };
    let options = OpenOptions { segment_bytes: 1 << 16, ..OpenOptions::default() };
    let files = Arc::new(LiveFiles::create(directory).unwrap());
    DurableDatabase::open(files, environment, options).unwrap()
}

#[test]
fn a_sound_directory_is_shown_and_passes_the_check() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("shop");
    drop(database(&directory));
    let path = directory.to_str().unwrap();
    let info = tools(&["data", "info", path]).done();
    assert!(info.contains("checkpoint of commit 0") && info.contains("log: 0 commits"), "{info}");
    let check = tools(&["data", "check", path]).done();
    assert!(check.ends_with("all files were read; no damage found\n"), "{check}");
    let made = tools(&["data", "checkpoint", path, "--json"]).json();
    assert_eq!(made["chunks_written"], 0);
    let json = tools(&["data", "check", path, "--json"]).json();
    assert_eq!((&json["checked"], &json["damage"]), (&true.into(), &serde_json::json!([])));
}

#[test]
fn damage_ends_with_1_and_names_the_file() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("shop");
    drop(database(&directory));
    let manifest = directory.join("manifest");
    let mut bytes = fs::read(&manifest).unwrap();
    bytes[50] ^= 1;
    fs::write(&manifest, bytes).unwrap();
    let path = directory.to_str().unwrap();
    for command in ["check", "info", "checkpoint"] {
        let message = tools(&["data", command, path]).failed(1);
        assert!(message.contains("manifest is damaged at byte 12"), "{command}: {message}");
    }
}

#[test]
fn other_directories_and_open_ones_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_str().unwrap();
    let empty = tools(&["data", "info", path]).failed(125);
    assert!(empty.contains("the directory holds no database"), "{empty}");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "nothing is left in it");
    let missing = tools(&["data", "check", "/nowhere/at/all"]).failed(125);
    assert!(missing.contains("/nowhere/at/all"), "{missing}");
    let open = database(&home.path().join("shop"));
    let used = tools(&["data", "info", home.path().join("shop").to_str().unwrap()]).failed(125);
    assert!(used.contains(&format!("in use by process {}", std::process::id())), "{used}");
    drop(open);
}

#[test]
fn a_copy_of_a_directory_is_whole_and_never_replaces_anything() {
    let home = tempfile::tempdir().unwrap();
    let backup = |to: &str| tools_in(home.path(), &["backup", "--data", "shop", "--to", to]);
    let missing = backup("copy").failed(125);
    assert!(missing.contains("shop"), "{missing}");
    let open = database(&home.path().join("shop"));
    let used = backup("copy").failed(125);
    assert!(used.contains("in use by process") && used.contains("BACKUP DATABASE TO"), "{used}");
    drop(open);
    let copied = backup("copy").done();
    assert!(copied.contains("copied to copy and checked"), "{copied}");
    tools_in(home.path(), &["data", "check", "copy"]).done();
    assert!(backup("copy").failed(125).contains("'copy' already exists"));
    fs::create_dir(home.path().join("other.partial")).unwrap();
    assert!(backup("other").failed(125).contains("'other.partial' already exists"));
    let manifest = home.path().join("shop/manifest");
    let mut bytes = fs::read(&manifest).unwrap();
    bytes[50] ^= 1;
    fs::write(&manifest, bytes).unwrap();
    let damaged = backup("third").failed(1);
    assert!(damaged.contains("manifest is damaged"), "{damaged}");
    let mut names: Vec<_> =
        fs::read_dir(home.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["copy", "other.partial", "shop"]);
}

#[test]
fn an_upgrade_is_checked_without_writing_also_while_the_directory_is_open() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("shop");
    let path = directory.to_str().unwrap();
    let open = database(&directory);
    let text = tools(&["upgrade-check", path]).done();
    assert!(text.contains("can open it") && text.contains("writes nothing"), "{text}");
    let json = tools(&["upgrade-check", path, "--json"]).json();
    assert_eq!(
        (&json["can_open"], &json["formats"][0]["what"]),
        (&true.into(), &"manifest".into())
    );
    drop(open);
    let manifest = directory.join("manifest");
    let mut bytes = std::fs::read(&manifest).unwrap();
    bytes[8..12].copy_from_slice(&3_u32.to_le_bytes());
    std::fs::write(&manifest, &bytes).unwrap();
    let text = tools(&["upgrade-check", path]).failed(1);
    assert_eq!(text, "");
    let json = tools(&["upgrade-check", path, "--json"]);
    assert!(json.out.contains("\"can_open\": false"), "{json:?}");
    bytes[0] = b'x';
    std::fs::write(&manifest, bytes).unwrap();
    let damaged = tools(&["upgrade-check", path]).failed(1);
    assert!(damaged.contains("manifest"), "{damaged}");
    let empty = home.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let none = tools(&["upgrade-check", empty.to_str().unwrap()]).failed(125);
    assert!(none.contains("the directory holds no database"), "{none}");
}
