//! Out of memory, cancellation, and failing consumers: an error, and everything is released.

use std::sync::Arc;

use atoll_placement::{Arena, FixedBudget};
use atoll_primitives::join::{JoinInput, JoinKind, Matches, RowPairs, hash_join};
use atoll_primitives::{Context, PrimitiveError};
use atoll_runtime::CancelToken;
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::Bytes;

use super::{parts, small, tiny_tables};

fn far_apart(rows: i64) -> Vec<Option<i64>> {
    (0..rows).map(|row| Some(row.wrapping_mul(0x4f1b_bcdc_bfa5_3e0b))).collect()
}

#[test]
fn a_budget_too_small_for_the_tables_is_an_error_and_everything_is_released() {
    let machine = Arc::new(machines::one_node());
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    let runtime = small().runtime().clone();
    for (limit, keys) in [(1 << 10, far_apart(5000)), (1 << 10, (0..5000).map(Some).collect())] {
        let budget = Arc::new(FixedBudget::new(Bytes(limit)));
        let arena = Arena::new(Arc::clone(&machine), kernel.clone(), Some(budget.clone()));
        for context in [
            Context::new(runtime.clone(), arena.clone()),
            Context::new(runtime.clone(), arena.clone()).with_tuning(tiny_tables()),
        ] {
            let side = JoinInput::new(parts(&context, &keys), [0]);
            let join = hash_join(&context, &side, &side, JoinKind::Full, |_| RowPairs::default());
            let error = runtime.block_on(join).expect_err("the budget is too small");
            assert!(matches!(error, PrimitiveError::Memory(_)), "{error}");
            assert_eq!(budget.used(), Bytes(0));
        }
    }
}

#[test]
fn a_cancelled_join_ends_as_cancelled() {
    let cancel = CancelToken::new();
    let context = small().with_cancel(cancel.clone());
    cancel.cancel();
    let side = JoinInput::new(parts(&context, &far_apart(1000)), [0]);
    let join = hash_join(&context, &side, &side, JoinKind::Inner, |_| RowPairs::default());
    let error = context.runtime().block_on(join).expect_err("it is cancelled");
    assert!(matches!(error, PrimitiveError::Cancelled(_)), "{error}");
}

/// Fails at the first pair.
struct Refuses;

impl Matches for Refuses {
    fn pairs(&mut self, _: &[u64], _: &[u64]) -> Result<(), PrimitiveError> {
        let data_type = arrow_schema::DataType::Int64;
        Err(PrimitiveError::Overflow { what: "sum".into(), data_type })
    }
}

#[test]
fn an_error_of_a_consumer_ends_the_join() {
    let dense: Vec<Option<i64>> = (0..1000).map(Some).collect();
    for context in [small(), small().with_tuning(tiny_tables())] {
        for keys in [far_apart(1000), dense.clone()] {
            let side = JoinInput::new(parts(&context, &keys), [0]);
            let join = hash_join(&context, &side, &side, JoinKind::Inner, |_| Refuses);
            let Err(error) = context.runtime().block_on(join) else { panic!("it goes on") };
            assert!(matches!(error, PrimitiveError::Overflow { .. }), "{error}");
        }
    }
}
