//! hwloc XML: what is read survives being written.
#![no_main]

use atoll_formats::xml;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(knowledge) = xml::parse(text, "fuzz.xml") {
        let again = xml::parse(&xml::write(&knowledge), "fuzz.xml");
        assert_eq!(again, Ok(knowledge));
    }
});
