//! A cancelled aggregation ends before its next block: the memory requests of a step cancel the token in its midst.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use atoll_placement::{Budget, BudgetExceeded};
use atoll_primitives::aggregate::{
    Collector, Expected, Gathered, Next, Outputs, SortedGroups, Stage, Variant,
};
use atoll_primitives::{Context, PrimitiveError};
use atoll_runtime::CancelToken;
use atoll_testkit::machines;
use atoll_topology::Bytes;

use super::data::{Spread, batch, column, numbers, sparse, with_nulls};
use super::{context, sum_by};

/// Blocks of the tests' tuning are of 500 rows, those of a merge of 4096 groups.
const GROUPS: usize = 100_000;

/// Grants everything, and cancels a token at the n-th request.
#[derive(Debug)]
struct RaisesAt {
    token: CancelToken,
    asked: AtomicU64,
    at: AtomicU64,
}

impl RaisesAt {
    /// Cancels the token at the n-th request from now on.
    fn arm(&self, requests: u64) {
        let asked = self.asked.load(Ordering::Relaxed);
        self.at.store(asked + requests, Ordering::Relaxed);
    }
}

impl Budget for RaisesAt {
    fn try_grow(&self, _: Bytes) -> Result<(), BudgetExceeded> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        if asked == self.at.load(Ordering::Relaxed) {
            self.token.cancel();
        }
        Ok(())
    }

    fn shrink(&self, _: Bytes) {}
}

fn raising() -> (Arc<RaisesAt>, Context) {
    let token = CancelToken::new();
    let (asked, at) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let budget = Arc::new(RaisesAt { token: token.clone(), asked, at });
    let context = context(machines::one_node(), Some(1), Some(budget.clone()));
    (budget, context.with_cancel(token))
}

/// Rows with distinct keys: numbers far apart, or strings that fit no word.
fn rows(of: &DataType) -> RecordBatch {
    let numbers = numbers(1, GROUPS, Spread::Distinct).into_iter();
    let key = |number| if *of == DataType::Int64 { sparse(number) } else { number * 3 + 1 };
    let keys: Vec<Option<u64>> = numbers.map(|number| Some(key(number))).collect();
    let values = with_nulls(2, &keys.iter().flatten().copied().collect::<Vec<_>>(), 0.0);
    batch(vec![column(of, &keys), column(&DataType::Int8, &values)]).1
}

fn stage(context: &Context, rows: &RecordBatch, variant: Variant) -> Arc<Stage> {
    let (schema, expected) = (rows.schema(), Expected::default());
    let stage = Stage::new(context.clone(), &sum_by(1), &schema, 1, &expected, variant);
    Arc::new(stage.expect("it can be made"))
}

/// The finished inputs, one for each of these batches.
fn collected(stage: &Arc<Stage>, inputs: &[RecordBatch]) -> Arc<Gathered> {
    let collector = |rows: &RecordBatch| {
        let mut collector = Collector::new(Arc::clone(stage), None);
        collector.push(rows).expect("nothing is cancelled yet");
        collector
    };
    super::streaming::gathered(stage, inputs.iter().map(collector).collect())
        .expect("nothing is cancelled yet")
}

#[track_caller]
fn assert_cancelled<T>(result: Result<T, PrimitiveError>) {
    match result {
        Err(PrimitiveError::Cancelled(_)) => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it went on to its end"),
    }
}

#[test]
fn a_batch_ends_before_its_next_block() {
    for variant in [Variant::Local, Variant::Ring] {
        for of in [DataType::Int64, DataType::Utf8View] {
            let (budget, context) = raising();
            let rows = rows(&of);
            let mut collector = Collector::new(stage(&context, &rows, variant), None);
            budget.arm(2);
            assert_cancelled(collector.push(&rows));
        }
    }
}

#[test]
fn a_merge_of_many_groups_ends_before_its_next_block() {
    for of in [DataType::Int64, DataType::Utf8View] {
        let (budget, context) = raising();
        let rows = rows(&of);
        let stage = stage(&context, &rows, Variant::Local);
        let half = GROUPS / 2;
        let tables = [rows.slice(0, half), rows.slice(half, half)];
        let mut outputs = Outputs::new(collected(&stage, &tables), 0, None, 8192);
        assert!(matches!(outputs.advance(), Ok(Next::Visit { .. })));
        budget.arm(8);
        assert_cancelled(outputs.visit());
    }
}

#[test]
fn the_reading_of_a_piece_ends_before_its_next_block() {
    let (budget, context) = raising();
    let rows = rows(&DataType::Int64);
    let stage = stage(&context, &rows, Variant::Ring);
    let mut outputs = Outputs::new(collected(&stage, &[rows]), 0, None, 8192);
    assert!(matches!(outputs.advance(), Ok(Next::Visit { .. })));
    budget.arm(3);
    assert_cancelled(outputs.visit());
}

#[test]
fn groups_that_are_handed_out_end_before_the_next_batch() {
    let (budget, context) = raising();
    let rows = rows(&DataType::Int64);
    let stage = stage(&context, &rows, Variant::Local);
    let mut outputs = Outputs::new(collected(&stage, &[rows]), 0, None, 1000);
    assert!(matches!(outputs.advance(), Ok(Next::Batch(_))));
    budget.arm(1);
    let last = outputs.advance().expect("raised in the midst of a batch, which is whole");
    assert!(matches!(last, Next::Batch(_)));
    assert_cancelled(outputs.advance());
}

#[test]
fn grouped_rows_end_before_the_next_block() {
    let (budget, context) = raising();
    let rows = rows(&DataType::Int64);
    let keys = [(false, None)];
    let runs = SortedGroups::new(context, &sum_by(1), &rows.schema(), &keys, None);
    let mut runs = runs.expect("it can be made").expect("the key is a word");
    budget.arm(6);
    assert_cancelled(runs.push(&rows));
}
