//! Functions whose result may be much larger than their arguments: `repeat('x', 1000000000)`.
//!
//! DataFusion's functions create results of any size without reserving memory, and if the arguments are
//! constants, they do so during planning, which copies the value several times. Here the size
//! of the result is estimated before the call ([`size`]): a call that would create more than
//! [`CALL_BYTES_MAX`] fails, a smaller one reserves memory while it runs, and during
//! optimization only small values are created: larger ones are left to execution.

mod size;

use std::cell::Cell;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Int64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl};
use datafusion::prelude::SessionContext;

use crate::wrapped::{Around, wrap};
use atoll_topology::Bytes;
use size::ResultBytes;

/// Maximum size that one call creates for all rows of a batch: PostgreSQL's maximum size of a value.
const CALL_BYTES_MAX: u64 = 1 << 30;

/// Size that a call creates without a reservation: a batch in transit, as in any function.
const UNRESERVED_BYTES: u64 = 16 << 20;

/// Maximum size that a call creates during optimization.
const CONSTANT_BYTES_MAX: u64 = 64 << 10;

thread_local! {
    static OPTIMIZING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, which evaluates constant expressions, without creating large values.
pub fn without_large_constants<T>(work: impl FnOnce() -> T) -> T {
    /// Also if the work panics.
    struct Restored(bool);
    impl Drop for Restored {
        fn drop(&mut self) {
            OPTIMIZING.set(self.0);
        }
    }
    let _restored = Restored(OPTIMIZING.replace(true));
    work()
}

/// Replaces the functions of the same name by bounded ones.
pub(super) fn register(context: &SessionContext) {
    let pool = &context.runtime_env().memory_pool;
    for (name, size) in size::FUNCTIONS {
        wrap(context, name, Growing { size, pool: Arc::clone(pool) });
    }
}

/// Limits the size of a function's results.
#[derive(Debug)]
struct Growing {
    size: ResultBytes,
    pool: Arc<dyn MemoryPool>,
}

fn refuse(name: &str, bytes: u64, rows: usize) -> Result<ColumnarValue> {
    let (bytes, most) = (Bytes(bytes), Bytes(CALL_BYTES_MAX));
    let help = match rows {
        0 | 1 => "",
        _ => "; SET datafusion.execution.batch_size to fewer rows",
    };
    exec_err!("{name} would make {bytes} for {rows} rows at once, more than {most}{help}")
}

/// Replaces negative lengths of pads by zeros: if the padding is a column, DataFusion 55.2 takes them for huge ones, and panics.
fn with_lengths(name: &str, mut args: ScalarFunctionArgs) -> ScalarFunctionArgs {
    if !["lpad", "rpad"].contains(&name) {
        return args;
    }
    match args.args.get_mut(1) {
        Some(ColumnarValue::Scalar(ScalarValue::Int64(Some(length)))) => *length = (*length).max(0),
        Some(ColumnarValue::Array(lengths)) if *lengths.data_type() == DataType::Int64 => {
            let least: Int64Array =
                lengths.as_primitive::<Int64Type>().unary(|length: i64| length.max(0));
            *lengths = Arc::new(least);
        }
        _ => {}
    }
    args
}

impl Around for Growing {
    fn invoke(&self, inner: &dyn ScalarUDFImpl, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let args = with_lengths(inner.name(), args);
        // A constant counts for every row, because most consumers expand it to a column.
        let rows = args.number_rows;
        let bytes = (self.size)(&args.args, rows)?;
        if bytes <= CONSTANT_BYTES_MAX {
            return inner.invoke_with_args(args);
        }
        if bytes > CALL_BYTES_MAX {
            return refuse(inner.name(), bytes, rows);
        }
        if OPTIMIZING.get() {
            return exec_err!("{} is left to execution", inner.name());
        }
        // Held during the call; afterwards the caller accounts for the result.
        let making = MemoryConsumer::new(inner.name()).register(&self.pool);
        if bytes > UNRESERVED_BYTES {
            making.try_grow(bytes as usize)?;
        }
        inner.invoke_with_args(args)
    }
}
