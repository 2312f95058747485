use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cpio::{Archive, Rights};
use super::libraries::Libraries;
use super::tree::PackTree;
use super::{Packed, libraries, pack, program, scripts};
use crate::{Guest, GuestShape, Installation, LabError, RunRequest};

const RIGHTS: Rights = Rights { mode: 0o640, user: 7, group: 9, modified: 1_700_000_000 };

/// An entry as it stands in an archive: mode, user, contents.
type Entry = (u32, u32, Vec<u8>);
/// Entries by name, in their order.
type Entries = Vec<(Vec<u8>, Entry)>;

/// Reads an archive back, by the format's own document.
fn entries(archive: &[u8]) -> Entries {
    let mut entries = Vec::new();
    let mut rest = archive;
    loop {
        assert_eq!(&rest[..6], b"070701");
        let field = |index: usize| {
            let text = std::str::from_utf8(&rest[6 + 8 * index..14 + 8 * index]).unwrap();
            u32::from_str_radix(text, 16).unwrap()
        };
        let (mode, user, size, name_size) =
            (field(1), field(2), field(6) as usize, field(11) as usize);
        let name = rest[110..110 + name_size - 1].to_vec();
        let start = (110 + name_size).next_multiple_of(4);
        let contents = rest[start..start + size].to_vec();
        rest = &rest[(start + size).next_multiple_of(4)..];
        if name == b"TRAILER!!!" {
            assert!(rest.is_empty());
            return entries;
        }
        entries.push((name, (mode, user, contents)));
    }
}

fn has(entries: &[(Vec<u8>, Entry)], path: &Path) -> bool {
    let name = path.strip_prefix("/").unwrap().as_os_str().as_bytes();
    entries.iter().any(|(entry, _)| entry == name)
}

fn request(command: &[&OsStr], directory: &Path) -> RunRequest {
    let known = atoll_formats::open("intel-2").unwrap();
    let guest = Guest::try_from_knowledge(&known, &GuestShape::default()).unwrap();
    let command = command.iter().map(|&word| word.to_owned()).collect();
    RunRequest { directory: directory.to_owned(), ..RunRequest::new(guest, command) }
}

/// Packs with any file in the place of busybox.
fn packed(request: &RunRequest) -> Result<(Entries, Packed), LabError> {
    let busybox = Some(PathBuf::from("/etc/passwd"));
    let installation = Installation { busybox, ..Installation::default() };
    let mut packed = pack(request, &installation, None)?;
    let mut bytes = Vec::new();
    packed.archive.rewind().unwrap();
    packed.archive.read_to_end(&mut bytes).unwrap();
    Ok((entries(&bytes), packed))
}

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn an_archive_holds_names_of_any_bytes_with_contents_and_rights() {
    let mut bytes = Vec::new();
    let names: [&[u8]; 4] = [b"a", b"with space\nand line", b"\xff\xfe", b"TRAILER"];
    let mut archive = Archive::new(&mut bytes);
    archive.directory(Path::new("/d"), RIGHTS).unwrap();
    for (size, name) in names.into_iter().enumerate() {
        let path = Path::new("/d").join(OsStr::from_bytes(name));
        archive.file(&path, RIGHTS, size as u64, &mut &b"12345"[..]).unwrap();
    }
    // A file that became shorter meanwhile is filled up.
    archive.file(Path::new("/short"), RIGHTS, 6, &mut &b"12"[..]).unwrap();
    archive.link(Path::new("/link"), OsStr::new("d/a")).unwrap();
    let size = archive.finish().unwrap();
    assert_eq!(size as usize, bytes.len());
    let read = entries(&bytes);
    assert_eq!(read[0], (b"d".to_vec(), (0o040_640, 7, Vec::new())));
    for (size, name) in names.into_iter().enumerate() {
        let contents = b"12345"[..size].to_vec();
        assert_eq!(read[size + 1], ([b"d/", name].concat(), (0o100_640, 7, contents)));
    }
    assert_eq!(read[5].1.2, b"12\0\0\0\0");
    assert_eq!(read[6], (b"link".to_vec(), (0o120_777, 0, b"d/a".to_vec())));
    // The sixth field of an entry is its age: 1700000000.
    assert_eq!(&bytes[6 + 8 * 5..14 + 8 * 5], b"6553f100");
    assert_eq!(listed_by_cpio(&bytes).unwrap_or(names.len() + 3), names.len() + 3);
}

/// How many entries cpio(1) finds (a line break in a name is one line more); none without it.
fn listed_by_cpio(archive: &[u8]) -> Option<usize> {
    let mut command = Command::new("cpio");
    command.args(["-it", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().ok()?;
    child.stdin.take()?.write_all(archive).ok()?;
    let output = child.wait_with_output().ok()?;
    assert!(output.status.success());
    Some(output.stdout.split(|&byte| byte == b'\n').count() - 2)
}

#[test]
fn the_output_of_ldd_is_read_and_a_missing_library_is_named() {
    let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tliba.so => /opt/a (b)/liba.so (0x00007f)\n\
                \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
    let paths = ["/opt/a (b)/liba.so", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
    assert_eq!(libraries::parse(text).paths, paths);
    assert_eq!(libraries::parse("\tlibx.so.1 => not found\n").missing, ["libx.so.1"]);
    for text in ["", "\tnot a dynamic executable\n", "\tstatically linked\n", " => (0x", "\n\n"] {
        assert_eq!(libraries::parse(text), Libraries::default(), "{text}");
    }
}

#[test]
fn the_first_line_of_a_script_names_its_interpreter_and_what_env_looks_for() {
    let read = |line: &str| {
        let (path, word) = program::interpreter(line.as_bytes())?;
        Some((path.to_str()?.to_owned(), word.map(|word| word.into_string().unwrap())))
    };
    let some = |path: &str, word: Option<&str>| Some((path.to_owned(), word.map(str::to_owned)));
    assert_eq!(read("#!/bin/sh"), some("/bin/sh", None));
    assert_eq!(read("#! /bin/sh -e\r"), some("/bin/sh", None));
    assert_eq!(read("#!/usr/bin/env -S A=b python3 -u"), some("/usr/bin/env", Some("python3")));
    for line in ["", "#!", "#!   ", "\x7fELF", "echo"] {
        assert_eq!(read(line), None, "{line}");
    }
}

#[test]
fn links_stay_links_and_what_they_lead_to_is_packed_once() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    fs::create_dir(base.join("real")).unwrap();
    fs::write(base.join("real/file"), "x").unwrap();
    symlink("real", base.join("folder")).unwrap();
    symlink("../folder/file", base.join("real/again")).unwrap();
    let mut tree = PackTree::default();
    assert_eq!(tree.add(&base.join("folder/again")).unwrap(), base.join("real/file"));
    for path in ["folder", "real", "real/again", "real/file"] {
        assert!(tree.contains(&base.join(path)), "{path}");
    }
    symlink("loop", base.join("loop")).unwrap();
    assert!(tree.add(&base.join("loop")).is_err());
    assert!(tree.add(&base.join("none")).is_err());
    assert!(tree.add(&base.join("real/file/below")).is_err());
}

#[test]
fn a_directory_is_packed_whole_and_dangling_links_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let odd = OsString::from_vec(b"\xff odd\nname".to_vec());
    fs::create_dir_all(base.join("data/a/b")).unwrap();
    fs::write(base.join("data/a/b").join(&odd), "x").unwrap();
    symlink("/no/such/file", base.join("data/dead")).unwrap();
    let mut tree = PackTree::default();
    tree.add_all(&base.join("data")).unwrap();
    assert!(tree.contains(&base.join("data/a/b").join(&odd)));
    let notes = tree.into_notes();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("dead: dangling symbolic link"));
}

#[test]
fn a_script_comes_with_its_interpreters_libraries_and_the_files_its_arguments_name() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    program(&base.join("run"), "#!/usr/bin/env sh\ncat \"$1\"\n");
    for name in ["data.bin", "other.bin", "left.bin"] {
        fs::write(base.join(name), "x").unwrap();
    }
    let words = ["./run", "data.bin", "--input=other.bin", "/proc/self/maps", "no-file"];
    let request = request(&words.map(OsStr::new), &base);
    let (entries, packed) = packed(&request).unwrap();
    for name in ["run", "data.bin", "other.bin"] {
        assert!(has(&entries, &base.join(name)), "{name}");
    }
    assert!(!has(&entries, &base.join("left.bin")) && !has(&entries, Path::new("/proc/self/maps")));
    let shell = Path::new("/bin/sh").canonicalize().unwrap();
    assert!(
        has(&entries, &shell) && has(&entries, &Path::new("/usr/bin/env").canonicalize().unwrap())
    );
    let is_libc = |(name, _): &(Vec<u8>, Entry)| name.ends_with(b"libc.so.6");
    assert!(entries.iter().any(is_libc), "a dynamic shell has its C library");
    assert!(packed.files.0 > 0);
    // What env looks for is found in the guest as it is here.
    assert!(has(&entries, Path::new("/atoll/programs/sh")));
    // A directory comes before what is in it.
    for (index, (name, _)) in entries.iter().enumerate() {
        let Some(end) = name.iter().rposition(|&byte| byte == b'/') else { continue };
        assert!(entries[..index].iter().any(|(earlier, _)| *earlier == name[..end]));
    }
}

#[test]
fn a_missing_program_is_reported_before_anything_is_booted() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let fails = |word: &str| packed(&request(&[OsStr::new(word)], &base)).err().unwrap();
    assert!(matches!(fails("no-such-program-anywhere"), LabError::NotFound { .. }));
    assert!(matches!(fails("./none"), LabError::NotFound { .. }));
    fs::write(base.join("plain"), "x").unwrap();
    assert!(fails("./plain").to_string().contains("chmod +x"));
    program(&base.join("lost"), "#!/no/such/interpreter\n");
    assert!(fails("./lost").to_string().contains("/no/such/interpreter"));
    program(&base.join("self"), &format!("#!{}\n", base.join("self").display()));
    assert!(matches!(fails("./self"), LabError::CannotRun { .. }));
    assert!(matches!(fails("./"), LabError::CannotRun { .. }));
}

#[test]
fn words_reach_the_program_as_they_are() {
    let request = request(&[], Path::new("/a 'b'"));
    let odd = OsString::from_vec(b"it's \xff $HOME `x` \"\n".to_vec());
    let words = [OsStr::new("printf"), OsStr::new("%s"), &odd];
    let text = scripts::command(&request, &words).unwrap();
    let printf = text.split(|&byte| byte == b'\n').collect::<Vec<_>>()[2..].join(&b"\n"[..]);
    let printf = [b"exec env -i".as_slice(), printf.strip_prefix(b"exec env -i").unwrap()].concat();
    let output = Command::new("sh").arg("-c").arg(OsStr::from_bytes(&printf)).output().unwrap();
    assert_eq!(output.stdout, odd.as_bytes());
    let nul = OsString::from_vec(b"a\0b".to_vec());
    assert!(matches!(scripts::quoted(&nul), Err(LabError::Unusable { .. })));
}

#[test]
fn preparing_sets_balancing_and_calibrates_only_where_asked() {
    let mut request = request(&[], Path::new("/"));
    assert_eq!(scripts::prepare(&request), b"set -e\n");
    request.balancing = Some(false);
    request.counting = Some(atoll_simulation::Counting::User);
    let text = String::from_utf8(scripts::prepare(&request)).unwrap();
    assert!(text.contains("echo 0 >/proc/sys/kernel/numa_balancing\n"));
    assert!(text.ends_with("lab guest calibrate\n"));
}

/// Compiles a library or a program with these flags; reports a skip and returns false without a compiler.
fn is_compiled(directory: &Path, source: &str, name: &str, flags: &[&str]) -> bool {
    let file = directory.join("source.c");
    fs::write(&file, source).unwrap();
    let mut command = Command::new("cc");
    command.current_dir(directory).arg("source.c").args(["-o", name]).args(flags);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            atoll_testkit::skip(atoll_testkit::Need::Compiler, error);
            return false;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    true
}

#[test]
fn a_library_next_to_the_real_file_is_found_through_a_link_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let library = ["-shared", "-fPIC"];
    if !is_compiled(&base, "int f(void) { return 0; }", "libbeside.so", &library) {
        return;
    }
    let source = "int f(void); int main(void) { return f(); }";
    is_compiled(&base, source, "real", &["-L.", "-lbeside", "-Wl,-rpath,$ORIGIN"]);
    fs::create_dir(base.join("bin")).unwrap();
    symlink("../real", base.join("bin/link")).unwrap();
    let request = request(&[base.join("bin/link").as_os_str()], &base);
    let (entries, packed) = packed(&request).unwrap();
    for name in ["bin/link", "real", "libbeside.so"] {
        assert!(has(&entries, &base.join(name)), "{name}");
    }
    assert_eq!(packed.notes, [""; 0]);
}

#[test]
fn a_library_that_a_packed_directory_lacks_is_noted_and_one_that_it_has_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    fs::create_dir(base.join("server")).unwrap();
    let library = ["-shared", "-fPIC"];
    if !is_compiled(&base, "int f(void) { return 0; }", "server/libinner.so", &library) {
        return;
    }
    let flags = ["-shared", "-fPIC", "-Lserver", "-linner"];
    is_compiled(&base, "int f(void); int g(void) { return f(); }", "libouter.so", &flags);
    let notes = |with: &Path| {
        let mut tree = PackTree::default();
        tree.add_all(with).unwrap();
        tree.into_notes()
    };
    assert_eq!(notes(&base), [""; 0]);
    let alone = notes(&base.join("libouter.so"));
    assert!(alone[0].ends_with("libouter.so needs the library libinner.so, which was not found"));
    // The program itself would not start.
    is_compiled(
        &base,
        "int g(void); int main(void) { return g(); }",
        "program",
        &["-L.", "-louter", "-Wl,-rpath,$ORIGIN", "-Wl,--allow-shlib-undefined"],
    );
    let request = request(&[OsStr::new("./program")], &base);
    assert!(matches!(packed(&request), Err(LabError::Library { .. })));
}

/// The shell's words that start the program.
fn started(entries: &Entries) -> String {
    let is_command = |(name, _): &&(Vec<u8>, Entry)| name == b"atoll/command";
    String::from_utf8(entries.iter().find(is_command).unwrap().1.2.clone()).unwrap()
}

#[test]
fn a_shim_is_asked_which_program_it_starts_and_where_its_library_is() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let path = |name: &str| base.join(name);
    for made in ["shims", "home/bin", "home/lib/test", "home/jmods"] {
        fs::create_dir_all(path(made)).unwrap();
    }
    for file in ["home/lib/os.py", "home/lib/test/a.py", "home/lib/modules", "home/jmods/b"] {
        fs::write(path(file), "x").unwrap();
    }
    for real in ["home/bin/python3.9", "home/bin/java"] {
        program(&path(real), "#!/bin/sh\n");
    }
    let at = base.display();
    let shim = format!("#!/bin/sh\nprintf '{at}/home/bin/python3.9\\n{at}/home/lib\\n'\n");
    program(&path("shims/python3"), &shim);
    program(&path("shims/java"), &format!("#!/bin/sh\necho '  java.home = {at}/home' >&2\n"));
    for (name, real, left_out) in [
        ("shims/python3", "home/bin/python3.9", "home/lib/test/a.py"),
        ("shims/java", "home/bin/java", "home/jmods/b"),
    ] {
        let (entries, _) = packed(&request(&[path(name).as_os_str()], &base)).unwrap();
        assert!(has(&entries, &path(real)) && has(&entries, &path("home/lib/modules")), "{name}");
        assert!(!has(&entries, &path(left_out)) && !has(&entries, &path(name)), "{name}");
        assert!(started(&entries).ends_with(&format!(" '{}'\n", path(real).display())), "{name}");
    }
}

#[test]
fn a_program_that_does_not_name_its_library_is_packed_as_any_other() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    for script in ["exit 3", "echo nonsense", "printf '/no/such/program\\n/no/such/library\\n'"] {
        program(&base.join("python"), &format!("#!/bin/sh\n{script}\n"));
        let (entries, _) = packed(&request(&[OsStr::new("./python")], &base)).unwrap();
        assert!(has(&entries, &base.join("python")), "{script}");
        assert!(started(&entries).ends_with(" './python'\n"), "{script}");
    }
}
