//! A segment of the log, overwritten from some place on: recovery ends with records or an error.
#![no_main]

use std::sync::Arc;

use atoll_store::DatabaseId;
use atoll_store::files::Files;
use atoll_store::log::{Log, LogOptions, RecoveryStart};
use atoll_store::simulated::SimulatedFiles;
use libfuzzer_sys::fuzz_target;

const OPTIONS: LogOptions = LogOptions { database: DatabaseId([7; 16]), segment_bytes: 8192 };

fn log() -> SimulatedFiles {
    let files = SimulatedFiles::new();
    let mut log = Log::create(Arc::new(files.clone()), OPTIONS).expect("a new log");
    for record in 0..20_u8 {
        log.append(&vec![record; usize::from(record) * 11]).expect("there is room");
    }
    log.write().and_then(|()| log.sync()).expect("it is written");
    files
}

fuzz_target!(|input: (u16, &[u8])| {
    let (at, bytes) = input;
    let files = log();
    let name = files.list("log").expect("the log").swap_remove(0);
    let file = files.open(&format!("log/{name}")).expect("a segment");
    let at = u64::from(at) % OPTIONS.segment_bytes;
    let bytes = &bytes[..bytes.len().min((OPTIONS.segment_bytes - at) as usize)];
    file.write_at(at, bytes).expect("it can be written");
    let files: Arc<dyn Files> = Arc::new(files);
    if let Ok(mut recovery) = Log::recover(files, OPTIONS, RecoveryStart::default()) {
        while let Ok(Some(_)) = recovery.next_record() {}
    }
});
