//! Every call of the file layer fails once, in turn, in every way: the error is reported, stays, and costs
//! nothing that was acknowledged.

use atoll_store::files::Files;
use atoll_store::log::{Log, LogError, RecoveryStart};
use atoll_store::simulated::{Fault, SimulatedFiles};

use crate::support::{FROM_START, Records, commit, create, payload, read, reopen};

const FAULTS: [Fault; 3] = [Fault::Device, Fault::NoSpace, Fault::Late];

/// Creates a log, commits records, drops a part by a checkpoint, opens it again and goes on; what was
/// acknowledged before the first error, and the error.
fn work(files: &SimulatedFiles) -> (Records, RecoveryStart, Option<LogError>) {
    let (mut acknowledged, mut start) = (Records::new(), FROM_START);
    let worked = try_work(files, &mut acknowledged, &mut start);
    (acknowledged, start, worked.err())
}

fn try_work(
    files: &SimulatedFiles,
    acknowledged: &mut Records,
    start: &mut RecoveryStart,
) -> Result<(), LogError> {
    let mut log = create(files)?;
    for number in 0..8 {
        commit_one(&mut log, number, acknowledged)?;
    }
    let from = acknowledged[5].0;
    *start = RecoveryStart { from, synced: from };
    log.truncate_before(from)?;
    drop(log);
    let (mut log, ..) = reopen(files, *start)?;
    for number in 8..12 {
        commit_one(&mut log, number, acknowledged)?;
    }
    Ok(())
}

fn commit_one(log: &mut Log, number: u64, acknowledged: &mut Records) -> Result<(), LogError> {
    let payload = payload(number, 300 * number as usize);
    acknowledged.push((commit(log, &payload)?, payload));
    Ok(())
}

/// Whether the log holds what was acknowledged, after a power cut and after the process was killed.
fn expect_kept(
    files: &SimulatedFiles,
    acknowledged: &Records,
    start: RecoveryStart,
    context: &str,
) {
    let needed = acknowledged.iter().filter(|(position, _)| *position > start.from);
    let needed: Vec<_> = needed.cloned().collect();
    let states = (0..4).map(|seed| files.crash(seed)).chain([files.restart()]);
    for files in states {
        match reopen(&files, start) {
            Ok((_, found, _)) => assert!(found.starts_with(&needed), "{context}"),
            // A creation that was cut off begins anew.
            Err(error) => {
                assert!(acknowledged.is_empty(), "{context}: {error}");
                create(&files).unwrap();
            }
        }
    }
}

#[test]
fn every_call_may_fail_once() {
    let files = SimulatedFiles::new();
    let (acknowledged, start, error) = work(&files);
    assert_eq!((acknowledged.len(), error), (12, None));
    let calls = files.calls();
    assert!(calls > 60, "{calls} calls");
    for fault in FAULTS {
        for call in 0..calls {
            let context = format!("{fault:?} at call {call}");
            let files = SimulatedFiles::new();
            files.fail_at(call, fault);
            let (acknowledged, reached, error) = work(&files);
            assert!(error.is_some(), "{context}: no error");
            expect_kept(&files, &acknowledged, reached, &context);
        }
    }
    expect_kept(&files, &acknowledged, start, "without a fault");
}

#[test]
fn the_power_may_go_at_every_call() {
    let files = SimulatedFiles::new();
    work(&files);
    for call in 0..files.calls() {
        let files = SimulatedFiles::new();
        files.cut_power_at(call);
        let (acknowledged, start, _) = work(&files);
        expect_kept(&files, &acknowledged, start, &format!("power cut at call {call}"));
    }
}

#[test]
fn the_first_error_is_given_for_ever() {
    for fault in FAULTS {
        let files = SimulatedFiles::new();
        let mut log = create(&files).unwrap();
        commit(&mut log, b"kept").unwrap();
        log.append(b"lost").unwrap();
        log.write().unwrap();
        files.fail_at(files.calls(), fault);
        let first = log.sync().unwrap_err();
        for _ in 0..2 {
            let later = log.append(b"more").unwrap_err();
            assert!(later.to_string().contains(&first.to_string()), "{later}");
            assert_eq!(log.write().unwrap_err(), later);
            assert_eq!(log.sync().unwrap_err(), later);
        }
    }
}

#[test]
fn a_full_disk_refuses_records_early_and_takes_them_again_when_there_is_space() {
    let files = SimulatedFiles::new();
    let mut log = create(&files).unwrap();
    files.set_space(Some(8192 + 5000));
    let mut kept = Records::new();
    let refused = loop {
        let payload = payload(kept.len() as u64, 100);
        match commit(&mut log, &payload) {
            Ok(position) => kept.push((position, payload)),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, LogError::NoSpace(_)), "{refused}");
    assert!(refused.to_string().contains("free space on that disk"), "{refused}");
    assert!(log.end().0 < 2100, "found only at {}", log.end());
    // What was taken for the next segment is given back.
    assert_eq!(files.list("log").unwrap().len(), 1);
    assert!(matches!(log.append(b"more"), Err(LogError::NoSpace(_))));
    assert_eq!(read(&files.crash(1), FROM_START).unwrap(), kept);
    files.set_space(None);
    kept.push((commit(&mut log, b"more").unwrap(), b"more".to_vec()));
    assert_eq!(read(&files.crash(2), FROM_START).unwrap(), kept);
}
