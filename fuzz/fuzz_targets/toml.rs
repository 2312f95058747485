//! Machine files: what is read survives being written.
#![no_main]

use atoll_formats::toml;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(knowledge) = toml::parse(text, "fuzz.toml") {
        let again = toml::parse(&toml::write(&knowledge), "fuzz.toml");
        assert_eq!(again, Ok(knowledge));
    }
});
