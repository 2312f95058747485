//! A dump of sysfs and procfs: whatever its files hold, discovery ends with a machine or an error.
#![no_main]

use atoll_formats::numactl::{self, Columns};
use atoll_formats::dump;
use atoll_topology::{Allowed, Machine};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(root) = dump::open(text, "fuzz.dump") {
        let _ = Machine::discover_at(&root, &Allowed::everything());
        if let Ok(allowed) = Allowed::of_process(&root) {
            let _ = Machine::discover_at(&root, &allowed);
        }
        let _ = numactl::hardware(&root, Columns::Narrow);
    }
});
