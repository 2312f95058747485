//! Shuffles.

use std::ptr::null;

use atoll::{RowsPart, atoll_shuffle, atoll_threads};

use crate::lent::{INT64, Open, UTF8, fixed, found, part, texts};

#[test]
fn every_worker_gets_its_piece_of_every_worker_in_memory_of_the_result() {
    let context = Open::new(3);
    // SAFETY: a context.
    let workers = unsafe { atoll_threads(context.0) } as usize;
    assert_eq!(workers, 3);
    // Piece of source s for worker w: s + w numbers 10 s + w, and as many texts.
    let numbers: Vec<Vec<i64>> = (0..9)
        .map(|piece| vec![10 * (piece / 3) + piece % 3; (piece / 3 + piece % 3) as usize])
        .collect();
    let offsets = [0, 1, 2, 3, 4];
    for order in 0..3 {
        let columns: Vec<_> = numbers
            .iter()
            .map(|numbers| [fixed(INT64, numbers), texts("abcd", &offsets[..=numbers.len()])])
            .collect();
        let pieces: Vec<RowsPart> = columns.iter().map(|columns| part(columns)).collect();
        // SAFETY: made of slices that live.
        let call = |to| unsafe { atoll_shuffle(context.0, pieces.as_ptr(), 9, order, to) };
        let got = found(call).unwrap();
        assert_eq!(got.blocks(), 9);
        for worker in 0..3 {
            for source in 0..3 {
                let (column, name) = (got.column(worker * 3 + source, 0), source * 3 + worker);
                assert_eq!(column.length, numbers[name].len(), "order {order}");
                assert!(numbers[name].is_empty() || column.values != columns[name][0].values);
                assert_eq!(got.column(worker * 3 + source, 1).data_type, UTF8);
            }
        }
        let sum: i64 = got.values::<i64>(0).into_iter().flatten().sum();
        assert_eq!(sum, numbers.iter().flatten().sum::<i64>());
        assert_eq!(got.texts(1).len(), 18);
    }
}

#[test]
fn another_number_of_pieces_than_workers_times_workers_is_an_error() {
    let context = Open::new(2);
    // SAFETY: nothing to point to.
    let call = |to| unsafe { atoll_shuffle(context.0, null(), 3, 0, to) };
    let (code, text) = found(call).unwrap_err();
    assert_eq!(
        (code, text.as_str()),
        (
            1,
            "wrong number of pieces 3; expected 4, one from each of \
                                           the 2 workers to each"
        )
    );
}
