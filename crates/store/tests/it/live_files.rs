//! The file layer over a directory of this machine.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, stdin};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::{self, Command, Stdio};

use atoll_store::files::{FileErrorKind, Files, LiveFiles};

fn data_directory() -> (tempfile::TempDir, LiveFiles) {
    let above = tempfile::tempdir().unwrap();
    let files = LiveFiles::create(&above.path().join("shop")).unwrap();
    (above, files)
}

#[test]
fn a_new_file_is_private_and_its_zeros_take_space() {
    let (_above, files) = data_directory();
    files.create_directory("log").unwrap();
    files.create_directory("log").unwrap();
    let file = files.create("log/a", 300_000).unwrap();
    assert_eq!((file.name(), file.bytes().unwrap()), ("log/a", 300_000));
    let mode = |name: &str| fs::metadata(files.directory().join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode(""), mode("log"), mode("log/a")), (0o700, 0o700, 0o600));
    let blocks = fs::metadata(files.directory().join("log/a")).unwrap().blocks();
    assert!(blocks * 512 >= 300_000, "only {blocks} blocks are allocated");
    let mut bytes = vec![1; 300_000];
    file.read_at(0, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 0));
}

#[test]
fn files_are_read_whole_or_not_at_all() {
    let (_above, files) = data_directory();
    let file = files.create("a", 0).unwrap();
    file.write_at(10, b"reef").unwrap();
    file.sync_data().unwrap();
    let file = files.open("a").unwrap();
    let mut bytes = [1; 14];
    file.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"\0\0\0\0\0\0\0\0\0\0reef");
    assert_eq!(file.read_at(1, &mut bytes).unwrap_err().kind, FileErrorKind::Ended);
    file.truncate(2).unwrap();
    assert_eq!(file.bytes().unwrap(), 2);
}

#[test]
fn files_are_listed_renamed_and_removed() {
    let (_above, files) = data_directory();
    for name in ["b", "a", "c"] {
        files.create(name, 0).unwrap().write_at(0, name.as_bytes()).unwrap();
    }
    files.create_directory("log").unwrap();
    assert_eq!(files.list("").unwrap(), ["a", "b", "c"]);
    files.rename("c", "a").unwrap();
    files.remove("b").unwrap();
    assert_eq!(files.list("").unwrap(), ["a"]);
    let mut byte = [0];
    files.open("a").unwrap().read_at(0, &mut byte).unwrap();
    assert_eq!(&byte, b"c");
    assert!(files.list("nothing").unwrap().is_empty());
    assert_eq!(files.create("a", 0).unwrap_err().kind, FileErrorKind::Exists);
    assert_eq!(files.open("b").unwrap_err().kind, FileErrorKind::NotFound);
    assert_eq!(files.remove("b").unwrap_err().kind, FileErrorKind::NotFound);
}

#[test]
fn links_are_not_followed() {
    let (above, files) = data_directory();
    let outside = above.path().join("outside");
    fs::write(&outside, "theirs").unwrap();
    symlink(&outside, files.directory().join("a")).unwrap();
    files.open("a").unwrap_err();
    files.create("a", 10).unwrap_err();
    symlink(&outside, files.directory().join("lock")).unwrap();
    files.lock().unwrap_err();
    assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs");
}

#[test]
fn a_second_lock_is_refused_with_the_process_that_holds_the_first() {
    let (_above, files) = data_directory();
    let lock = files.lock().unwrap();
    let error = files.lock().unwrap_err();
    assert_eq!(error.kind, FileErrorKind::Locked(Some(process::id())));
    let text = error.to_string();
    assert!(text.contains(&format!("it is in use by process {}", process::id())), "{text}");
    drop(lock);
    files.lock().unwrap();
}

/// Names the data directory to the child process of the next test.
const LOCKED_BY_CHILD: &str = "ATOLL_TEST_LOCKED_BY_CHILD";

#[test]
fn a_lock_of_another_process_names_it_and_ends_with_it() {
    if let Some(directory) = env::var_os(LOCKED_BY_CHILD) {
        let files = LiveFiles::open(Path::new(&directory)).unwrap();
        let _lock = files.lock().unwrap();
        println!("\nlocked");
        let _ = stdin().read(&mut [0]);
        return;
    }
    let (_above, files) = data_directory();
    let test = "live_files::a_lock_of_another_process_names_it_and_ends_with_it";
    let mut child = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(LOCKED_BY_CHILD, files.directory())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "locked"));
    assert_eq!(files.lock().unwrap_err().kind, FileErrorKind::Locked(Some(child.id())));
    child.kill().unwrap();
    child.wait().unwrap();
    files.lock().unwrap();
}

#[test]
fn a_directory_that_does_not_exist_is_named() {
    let above = tempfile::tempdir().unwrap();
    let missing = above.path().join("shop");
    let error = LiveFiles::open(&missing).unwrap_err();
    assert_eq!(error.kind, FileErrorKind::NotFound);
    assert!(error.to_string().starts_with(&format!("cannot open {}: ", missing.display())));
    LiveFiles::create(&missing.join("deeper")).unwrap_err();
    fs::write(&missing, "").unwrap();
    LiveFiles::open(&missing).unwrap_err();
    LiveFiles::create(&missing).unwrap_err();
}
