//! Lists such as `0-3,8`: the shortest form means the same.
#![no_main]

use atoll_topology::CpuSet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(set) = CpuSet::parse(text) {
        assert_eq!(CpuSet::parse(&set.to_string()), Ok(set));
    }
});
