//! Functions whose result may be far larger than their arguments: `repeat('x', 1000000000)`.
//!
//! DataFusion's own make whatever they are told, reserve no memory for it, and do so when a statement
//! is planned if the arguments are constants, where several copies of the value are made. Here the size
//! of the result is reckoned before the call ([`size`]): a call that would make more than
//! [`CALL_BYTES_MAX`] is an error, a smaller one reserves what it makes while it runs, and while a
//! statement is optimized only small values are made: a larger one is left to be made when it runs.
//!
//! Each function stays as it is in all else.

mod size;

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, exec_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::prelude::SessionContext;

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
    let functions = context.state().scalar_functions().clone();
    let pool = &context.runtime_env().memory_pool;
    for (name, size) in size::FUNCTIONS {
        let Some(function) = functions.get(name) else { continue };
        let bounded = Growing { inner: Arc::clone(function.inner()), size, pool: Arc::clone(pool) };
        context.register_udf(ScalarUDF::new_from_impl(bounded));
    }
}

/// A function with the size of its results.
#[derive(Debug)]
struct Growing {
    inner: Arc<dyn ScalarUDFImpl>,
    size: ResultBytes,
    pool: Arc<dyn MemoryPool>,
}

impl PartialEq for Growing {
    fn eq(&self, other: &Self) -> bool {
        self.inner.name() == other.inner.name()
    }
}

impl Eq for Growing {}

impl Hash for Growing {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.name().hash(state);
    }
}

impl Growing {
    fn refuse(&self, bytes: u64, rows: usize) -> Result<ColumnarValue> {
        let (name, most) = (self.inner.name(), Bytes(CALL_BYTES_MAX));
        let help = match rows {
            0 | 1 => "",
            _ => "; SET datafusion.execution.batch_size to fewer rows",
        };
        let bytes = Bytes(bytes);
        exec_err!("{name} would make {bytes} for {rows} rows at once, more than {most}{help}")
    }
}

impl ScalarUDFImpl for Growing {
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // A constant counts for every row: most of what reads it wants a column.
        let rows = args.number_rows;
        let bytes = (self.size)(&args.args, rows)?;
        if bytes <= CONSTANT_BYTES_MAX {
            return self.inner.invoke_with_args(args);
        }
        if bytes > CALL_BYTES_MAX {
            return self.refuse(bytes, rows);
        }
        if OPTIMIZING.get() {
            return exec_err!("{} is left to the execution", self.inner.name());
        }
        // For as long as it takes: what comes of the value then is the caller's to account for.
        let making = MemoryConsumer::new(self.inner.name()).register(&self.pool);
        if bytes > UNRESERVED_BYTES {
            making.try_grow(bytes as usize)?;
        }
        self.inner.invoke_with_args(args)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        self.inner.preimage(args, literal, info)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        self.inner.evaluate_bounds(inputs)
    }

    fn propagate_constraints(
        &self,
        interval: &Interval,
        inputs: &[&Interval],
    ) -> Result<Option<Vec<Interval>>> {
        self.inner.propagate_constraints(interval, inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.preserves_lex_ordering(inputs)
    }

    fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.strictly_order_preserving(inputs)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.inner.placement(args)
    }
}
