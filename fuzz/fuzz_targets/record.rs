//! A record of the log: what is read is written so that it reads the same.
#![no_main]

use atoll_store::record::{RecordError, decode_record, encode_record, files_of_record};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = files_of_record(bytes);
    // Chunks are files of their own: a record that names one is not read to its end.
    let no_chunk = |_| Err(RecordError::NewerFormat(0));
    if let Ok(change) = decode_record(bytes, no_chunk) {
        let written = encode_record(&change).expect("what was read can be written");
        let again = decode_record(&written, no_chunk).expect("what was written can be read");
        assert_eq!(encode_record(&again).expect("it can be written again"), written);
    }
});
