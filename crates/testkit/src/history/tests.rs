//! The checker on histories that hold each anomaly, and on one that holds none.

use super::HistoryStep::{Append, Read};
use super::{Anomaly, Ending, HistoryStep, HistoryTransaction, anomalies};

const X: u64 = 1;
const Y: u64 = 2;

fn append(key: u64, value: u64) -> HistoryStep {
    Append { key, value }
}

fn read(key: u64, list: &[u64]) -> HistoryStep {
    Read { key, list: list.to_vec(), since: 0 }
}

fn committed(steps: Vec<HistoryStep>) -> HistoryTransaction {
    HistoryTransaction { steps, ending: Ending::Committed(u64::MAX) }
}

fn aborted(steps: Vec<HistoryStep>) -> HistoryTransaction {
    HistoryTransaction { steps, ending: Ending::Aborted }
}

fn expect(history: &[HistoryTransaction], wanted: &[Anomaly]) {
    let found: Vec<Anomaly> = anomalies(history).into_iter().collect();
    assert_eq!(found, wanted);
}

#[test]
fn a_serial_history_holds_none() {
    expect(
        &[
            committed(vec![append(X, 1), append(Y, 2)]),
            committed(vec![read(X, &[1]), append(X, 3), append(X, 4), read(X, &[1, 3, 4])]),
            aborted(vec![read(X, &[1, 3, 4]), append(X, 5)]),
            committed(vec![read(X, &[1, 3, 4]), read(Y, &[2])]),
        ],
        &[],
    );
}

#[test]
fn writes_of_two_transactions_between_each_other_are_g0() {
    expect(
        &[
            committed(vec![append(X, 1), append(Y, 2)]),
            committed(vec![append(X, 3), append(Y, 4)]),
            committed(vec![read(X, &[1, 3])]),
            committed(vec![read(Y, &[4, 2])]),
        ],
        &[Anomaly::G0],
    );
}

#[test]
fn a_read_of_what_was_rolled_back_is_g1a() {
    expect(&[aborted(vec![append(X, 1)]), committed(vec![read(X, &[1])])], &[Anomaly::G1a]);
}

#[test]
fn a_read_of_what_its_writer_overwrote_is_g1b() {
    let writer = committed(vec![append(X, 1), append(X, 2)]);
    let history = [writer, committed(vec![read(X, &[1])]), committed(vec![read(X, &[1, 2])])];
    assert!(anomalies(&history).contains(&Anomaly::G1b));
}

#[test]
fn two_that_read_each_others_writes_are_g1c() {
    expect(
        &[
            committed(vec![append(X, 1), read(Y, &[2])]),
            committed(vec![append(Y, 2), read(X, &[1])]),
        ],
        &[Anomaly::G1c],
    );
}

#[test]
fn two_reads_on_both_sides_of_a_commit_are_g_single() {
    expect(
        &[
            committed(vec![append(X, 1), append(Y, 2)]),
            committed(vec![read(X, &[]), read(Y, &[2])]),
            committed(vec![read(X, &[1])]),
        ],
        &[Anomaly::GSingle, Anomaly::GSi, Anomaly::G2Item],
    );
}

#[test]
fn a_write_over_one_that_was_not_read_is_a_lost_update() {
    expect(
        &[
            committed(vec![read(X, &[]), append(X, 1)]),
            committed(vec![read(X, &[]), append(X, 2)]),
            committed(vec![read(X, &[1, 2])]),
        ],
        &[Anomaly::GSingle, Anomaly::LostUpdate, Anomaly::GSi, Anomaly::G2Item],
    );
}

#[test]
fn write_skew_is_g2_item_and_allowed_by_snapshots() {
    expect(
        &[
            committed(vec![read(X, &[]), read(Y, &[]), append(X, 1)]),
            committed(vec![read(X, &[]), read(Y, &[]), append(Y, 2)]),
            committed(vec![read(X, &[1]), read(Y, &[2])]),
        ],
        &[Anomaly::G2Item],
    );
}

#[test]
fn two_readers_that_see_two_writers_in_two_orders_are_g_si() {
    expect(
        &[
            committed(vec![append(X, 1)]),
            committed(vec![append(Y, 2)]),
            committed(vec![read(X, &[1]), read(Y, &[])]),
            committed(vec![read(X, &[]), read(Y, &[2])]),
            committed(vec![read(X, &[1]), read(Y, &[2])]),
        ],
        &[Anomaly::GSi, Anomaly::G2Item],
    );
}

#[test]
fn inconsistent_lists_are_found() {
    let writers = [committed(vec![append(X, 1)]), committed(vec![append(X, 2)])];
    let readers = [committed(vec![read(X, &[1, 2])]), committed(vec![read(X, &[2])])];
    let history: Vec<_> = writers.into_iter().chain(readers).collect();
    assert!(anomalies(&history).contains(&Anomaly::IncompatibleOrder));
}

#[test]
fn a_transaction_that_misses_its_own_write_is_found() {
    let history = [committed(vec![append(X, 1), read(X, &[])])];
    assert!(anomalies(&history).contains(&Anomaly::OwnWriteMissing));
}

#[test]
fn a_read_that_misses_an_acknowledged_commit_is_found() {
    let writer = HistoryTransaction { steps: vec![append(X, 1)], ending: Ending::Committed(5) };
    let read = |since| committed(vec![Read { key: X, list: vec![], since }]);
    expect(&[writer.clone(), read(6)], &[Anomaly::StaleRead]);
    expect(&[writer, read(5)], &[]);
}
