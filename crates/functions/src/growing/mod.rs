//! Functions whose result may be far larger than their arguments: `repeat('x', 1000000000)`.
//!
//! DataFusion's own make whatever they are told, reserve no memory for it, and do so when a statement
//! is planned if the arguments are constants, where several copies of the value are made. Here the size
//! of the result is reckoned before the call ([`size`]): a call that would make more than
//! [`CALL_BYTES_MAX`] is an error, a smaller one reserves what it makes while it runs, and while a
//! statement is optimized only small values are made: a larger one is left to be made when it runs.

mod size;

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::{Result, exec_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl};
use datafusion::prelude::SessionContext;

use crate::wrapped::{Around, wrap};
use atoll_topology::Bytes;
use size::ResultBytes;

/// Most that one call makes, for all the rows of a batch: as much as a value has in PostgreSQL.
const CALL_BYTES_MAX: u64 = 1 << 30;

/// What a call makes without reserving it: a batch on its way, as any function makes them.
const UNRESERVED_BYTES: u64 = 16 << 20;

/// Most that a call makes while a statement is optimized.
const CONSTANT_BYTES_MAX: u64 = 64 << 10;

thread_local! {
    static OPTIMIZING: Cell<bool> = const { Cell::new(false) };
}

/// Does `work`, in which constant expressions are computed, without making large values.
pub fn without_large_constants<T>(work: impl FnOnce() -> T) -> T {
    /// Also where the work panics.
    struct Restored(bool);
    impl Drop for Restored {
        fn drop(&mut self) {
            OPTIMIZING.set(self.0);
        }
    }
    let _restored = Restored(OPTIMIZING.replace(true));
    work()
}

/// Puts the bounded functions in the place of those of the same name.
pub(super) fn register(context: &SessionContext) {
    let pool = &context.runtime_env().memory_pool;
    for (name, size) in size::FUNCTIONS {
        wrap(context, name, Growing { size, pool: Arc::clone(pool) });
    }
}

/// What keeps the results of a function small.
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

impl Around for Growing {
    fn invoke(&self, inner: &dyn ScalarUDFImpl, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // A constant counts for every row: most of what reads it wants a column.
        let rows = args.number_rows;
        let bytes = (self.size)(&args.args, rows)?;
        if bytes <= CONSTANT_BYTES_MAX {
            return inner.invoke_with_args(args);
        }
        if bytes > CALL_BYTES_MAX {
            return refuse(inner.name(), bytes, rows);
        }
        if OPTIMIZING.get() {
            return exec_err!("{} is left to the execution", inner.name());
        }
        // For as long as it takes: what comes of the value then is the caller's to account for.
        let making = MemoryConsumer::new(inner.name()).register(&self.pool);
        if bytes > UNRESERVED_BYTES {
            making.try_grow(bytes as usize)?;
        }
        inner.invoke_with_args(args)
    }
}
