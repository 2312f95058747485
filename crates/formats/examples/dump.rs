//! Prints a dump of this machine, or of the one under a directory, or a dump in its shortest form.
//!
//! ```text
//! cargo run -p atoll-formats --example dump -- NAME [DIRECTORY | FILE]
//! ```
//!
//! NAME replaces the host name.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::{env, fs, io};

use atoll_formats::dump;
use atoll_sys::Root;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let name = arguments.next().ok_or("expected a name for the machine")?;
    let root = match arguments.next() {
        None => Root::live(),
        Some(path) if Path::new(&path).is_dir() => Root::at(path),
        Some(path) => dump::open(&fs::read_to_string(&path)?, &path)?,
    };
    io::stdout().write_all(dump::gather(&root, &name).as_bytes())?;
    Ok(())
}
