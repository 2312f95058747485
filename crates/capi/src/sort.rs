//! Sorting into the caller's buffers.

use std::ffi::{c_int, c_void};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{Field, Schema};
use atoll_primitives::sort::{SortBy, SortedRun, sort};
use atoll_primitives::{Part, PrimitiveError, TaskFn};
use atoll_runtime::TaskContext;

use crate::column::{Column, INT64, UINT64};
use crate::context::{self, Context};
use crate::failure::{CallFailure, Code, guard};
use crate::foreign::{self, CallerBuffer, addresses, apart};

/// `ATOLL_DESCENDING`.
const DESCENDING: u32 = 1;
/// `ATOLL_STABLE`.
const STABLE: u32 = 2;
/// `ATOLL_FLOAT64`.
const FLOAT64: u32 = 10;

/// A requested sort: keys of a type; `key` converts a sort word back to a value.
struct Sort<K> {
    data_type: u32,
    key: fn(u64) -> K,
    keys: *const K,
    payloads: *const u64,
    rows: usize,
    flags: u32,
    keys_out: *mut K,
    payloads_out: *mut u64,
}

impl<K: Copy + Send + 'static> Sort<K> {
    /// Does it.
    ///
    /// # Safety
    /// As atoll.h says.
    unsafe fn run(self, context: *const Context) -> Result<(), CallFailure> {
        // SAFETY: the caller's promise, here and below.
        let context = unsafe { context::of_call(context)? };
        let by = self.by()?;
        self.check()?;
        // SAFETY: the same; the column is read by tasks that end before the function returns.
        let part = unsafe { self.part()? };
        let payload_rows = if self.payloads.is_null() { 0 } else { self.rows };
        // SAFETY: the same.
        let lent = unsafe {
            foreign::lend_numbers(foreign::slice("payloads", self.payloads, payload_rows)?)
        };
        let payloads = (!self.payloads.is_null()).then_some(lent);
        // SAFETY: the same; it overlaps nothing by the check above.
        let keys_out = unsafe { self.room("keys_out", self.keys_out)? };
        // SAFETY: the same.
        let payloads_out = unsafe { self.room("payloads_out", self.payloads_out)? };

        let sorted = context::wait(&context, sort(&context, &[part], by))?;
        let out = SortOutput { keys: keys_out, payloads: payloads_out };
        let word = move |word: u64| (self.key)(if by.descending { !word } else { word });
        context::wait(&context, out.write(&context, sorted.runs, payloads, word))
    }

    fn by(&self) -> Result<SortBy, CallFailure> {
        if self.flags & !(DESCENDING | STABLE) != 0 {
            let text = format!(
                "unknown flags {:#x}; expected a combination of ATOLL_DESCENDING and \
                         ATOLL_STABLE",
                self.flags
            );
            return Err(CallFailure::invalid(text));
        }
        let descending = self.flags & DESCENDING != 0;
        Ok(SortBy { descending, stable: self.flags & STABLE != 0, ..SortBy::column(0) })
    }

    /// Rejects overlapping outputs, and a sort without outputs.
    fn check(&self) -> Result<(), CallFailure> {
        if self.keys_out.is_null() && self.payloads_out.is_null() && self.rows > 0 {
            return Err(CallFailure::invalid(
                "keys_out and payloads_out are both null pointers; pass at least one",
            ));
        }
        let rows = |is_null: bool| if is_null { 0 } else { self.rows };
        let outputs = [
            ("keys_out", addresses(self.keys_out, rows(self.keys_out.is_null()))),
            ("payloads_out", addresses(self.payloads_out, rows(self.payloads_out.is_null()))),
        ];
        let inputs = [
            ("keys", addresses(self.keys, self.rows)),
            ("payloads", addresses(self.payloads, rows(self.payloads.is_null()))),
        ];
        apart(&outputs, &inputs)
    }

    /// # Safety
    /// As [`CallerBuffer::new`].
    unsafe fn room<T: Copy>(
        &self,
        what: &str,
        at: *mut T,
    ) -> Result<Option<CallerBuffer<T>>, CallFailure> {
        // SAFETY: as the caller promises.
        (!at.is_null()).then(|| unsafe { CallerBuffer::new(what, at, self.rows) }).transpose()
    }

    /// # Safety
    /// As [`Column::array`].
    unsafe fn part(&self) -> Result<Part, CallFailure> {
        let column = Column::fixed(self.data_type, self.keys.cast::<c_void>(), self.rows);
        // SAFETY: as the caller promises.
        let keys = unsafe { column.array() };
        let keys = keys.map_err(|failure| crate::part::at("keys", failure))?;
        let schema = Schema::new(vec![Field::new("key", keys.data_type().clone(), false)]);
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let rows = RecordBatch::try_new_with_options(schema.into(), vec![keys], &options);
        Ok(Part::new(None, rows.map_err(|error| CallFailure::new(Code::Defect, error))?))
    }
}

/// The outputs of a sort.
struct SortOutput<K> {
    keys: Option<CallerBuffer<K>>,
    payloads: Option<CallerBuffer<u64>>,
}

impl<K: Copy + Send + 'static> SortOutput<K> {
    /// Writes runs one after another, each by a task on its node.
    async fn write(
        self,
        context: &atoll_primitives::Context,
        runs: Vec<SortedRun>,
        payloads: Option<ScalarBuffer<u64>>,
        key: impl Fn(u64) -> K + Clone + Send + 'static,
    ) -> Result<(), PrimitiveError> {
        let block = context.tuning().block_rows.max(1);
        let mut rest = self;
        let mut work: Vec<(_, TaskFn<()>)> = Vec::with_capacity(runs.len());
        for run in runs {
            let (mut room, behind) = rest.split(run.rows().len());
            rest = behind;
            let (payloads, key) = (payloads.clone(), key.clone());
            let home = run.home();
            let write = move |task: &TaskContext| {
                for (number, rows) in run.rows().chunks(block).enumerate() {
                    task.check()?;
                    let at = number * block;
                    if let Some(room) = &mut room.keys {
                        room.write(at, rows.iter().map(|row| key(row[0])));
                    }
                    match (&mut room.payloads, &payloads) {
                        (None, _) => (),
                        (Some(room), None) => room.write(at, rows.iter().map(|row| row[1])),
                        (Some(room), Some(payloads)) => {
                            room.write(at, rows.iter().map(|row| payloads[row[1] as usize]));
                        }
                    }
                }
                Ok(())
            };
            work.push((home, Box::new(write)));
        }
        context.on_nodes("write runs", work).await.map(drop)
    }

    fn split(self, at: usize) -> (Self, Self) {
        let (keys, keys_behind) = self.keys.map(|room| room.split(at)).unzip();
        let (payloads, payloads_behind) = self.payloads.map(|room| room.split(at)).unzip();
        (Self { keys, payloads }, Self { keys: keys_behind, payloads: payloads_behind })
    }
}

/// The integer of a word: see [`atoll_primitives::sort::integer_word`].
fn integer(word: u64) -> i64 {
    (word ^ 1 << 63) as i64
}

/// The float of a word: see [`atoll_primitives::sort::float_word`].
fn float(word: u64) -> f64 {
    let was_positive = word >> 63 == 1;
    f64::from_bits(if was_positive { word ^ 1 << 63 } else { !word })
}

/// Sorts.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_sort_u64(
    context: *mut Context,
    keys: *const u64,
    payloads: *const u64,
    rows: usize,
    flags: u32,
    keys_out: *mut u64,
    payloads_out: *mut u64,
) -> c_int {
    let (data_type, key) = (UINT64, |word| word);
    let sort = Sort { data_type, key, keys, payloads, rows, flags, keys_out, payloads_out };
    // SAFETY: the caller's promise.
    guard(|| unsafe { sort.run(context) })
}

/// Sorts.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_sort_i64(
    context: *mut Context,
    keys: *const i64,
    payloads: *const u64,
    rows: usize,
    flags: u32,
    keys_out: *mut i64,
    payloads_out: *mut u64,
) -> c_int {
    let (data_type, key) = (INT64, integer);
    let sort = Sort { data_type, key, keys, payloads, rows, flags, keys_out, payloads_out };
    // SAFETY: the caller's promise.
    guard(|| unsafe { sort.run(context) })
}

/// Sorts.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_sort_f64(
    context: *mut Context,
    keys: *const f64,
    payloads: *const u64,
    rows: usize,
    flags: u32,
    keys_out: *mut f64,
    payloads_out: *mut u64,
) -> c_int {
    let (data_type, key) = (FLOAT64, float);
    let sort = Sort { data_type, key, keys, payloads, rows, flags, keys_out, payloads_out };
    // SAFETY: the caller's promise.
    guard(|| unsafe { sort.run(context) })
}

#[cfg(test)]
mod tests {
    use atoll_primitives::sort::{float_word, integer_word};

    use super::*;

    #[test]
    fn words_become_the_values_that_they_were_made_of() {
        for value in [i64::MIN, -1, 0, 1, i64::MAX] {
            assert_eq!(integer(integer_word(value)), value);
        }
        for value in [-f64::NAN, f64::NEG_INFINITY, -1.5, -0.0, 0.0, 2.5, f64::NAN] {
            assert_eq!(float(float_word(value)).to_bits(), value.to_bits());
        }
    }
}
