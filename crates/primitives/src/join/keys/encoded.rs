//! Keys that do not fit 64 bits: encoded row by row as bytes (Arrow's row format) in memory of the context, with a hash
//! of each.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float32Array, Float64Array};
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType;
use atoll_placement::NodeBuffer;
use atoll_runtime::{StepReport, TaskContext};

use super::words::one_zero;
use crate::join::input::JoinInput;
use crate::kernel::words;
use crate::{Context, PrimitiveError, TaskFn, hash};

/// Rows encoded at a time; this bounds the encoder's own memory.
const CHUNK_ROWS: usize = 8192;

/// Encoded keys of one part.
#[derive(Debug)]
pub(in crate::join) struct EncodedKeys {
    chunks: Vec<EncodedChunk>,
}

#[derive(Debug)]
struct EncodedChunk {
    /// Hash of each row and end position of its bytes.
    rows: NodeBuffer,
    bytes: NodeBuffer,
}

impl EncodedKeys {
    /// Bytes of a row's key: equal for equal keys.
    pub(super) fn bytes(&self, row: usize) -> &[u8] {
        let chunk = &self.chunks[row / CHUNK_ROWS];
        let rows = words::rows::<2>(chunk.rows.as_slice());
        let at = row % CHUNK_ROWS;
        let start = if at == 0 { 0 } else { rows[at - 1][1] };
        &chunk.bytes.as_slice()[start as usize..rows[at][1] as usize]
    }

    /// Writes the hashes of rows from `start` on.
    pub(super) fn hashes(&self, start: usize, hashes: &mut [u64]) {
        for (row, hash) in (start..).zip(hashes) {
            let rows = words::rows::<2>(self.chunks[row / CHUNK_ROWS].rows.as_slice());
            *hash = rows[row % CHUNK_ROWS][0];
        }
    }
}

/// Encodes the keys of a side, each chunk of rows on the node that holds it; by part.
pub(in crate::join) async fn encode(
    context: &Context,
    side: &str,
    input: &JoinInput,
) -> Result<(Vec<EncodedKeys>, StepReport), PrimitiveError> {
    let mut tasks = Vec::new();
    for part in &input.parts {
        let columns = Arc::new(one_zero_columns(input.columns(side, part)?));
        for start in (0..part.rows.num_rows()).step_by(CHUNK_ROWS) {
            let len = CHUNK_ROWS.min(part.rows.num_rows() - start);
            let (columns, context) = (Arc::clone(&columns), context.clone());
            let task: TaskFn<EncodedChunk> = Box::new(move |task| {
                let columns = columns.iter().map(|column| column.slice(start, len)).collect();
                encode_chunk(&context, task, columns)
            });
            tasks.push((part.home, task));
        }
    }
    let (chunks, report) = context.on_nodes("encode keys", tasks).await?;
    let mut chunks = chunks.into_iter();
    let chunks_of = |rows: usize| rows.div_ceil(CHUNK_ROWS);
    let parts = input.parts.iter().map(|part| EncodedKeys {
        chunks: chunks.by_ref().take(chunks_of(part.rows.num_rows())).collect(),
    });
    Ok((parts.collect(), report))
}

fn encode_chunk(
    context: &Context,
    task: &TaskContext,
    columns: Vec<ArrayRef>,
) -> Result<EncodedChunk, PrimitiveError> {
    task.check()?;
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone()));
    let encoded = RowConverter::new(fields.collect())?.convert_columns(&columns)?;
    let home = Some(task.node());
    let bytes: usize = encoded.iter().map(|row| row.data().len()).sum();
    let mut chunk = EncodedChunk {
        rows: context.arena().allocate(home, encoded.num_rows() * 16)?,
        bytes: context.arena().allocate(home, bytes)?,
    };
    let rows = words::rows_mut::<2>(chunk.rows.as_mut_slice());
    let mut end = 0;
    for (row, key) in rows.iter_mut().zip(encoded.iter()) {
        let key = key.data();
        chunk.bytes.as_mut_slice()[end..end + key.len()].copy_from_slice(key);
        end += key.len();
        *row = [hash_bytes(key), end as u64];
    }
    Ok(chunk)
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).map(|word| u64::from_le_bytes(*word));
    words.fold(bytes.len() as u64, hash::then)
}

/// Floats as keys: −0.0 is 0.0, and NaNs are equal.
fn one_zero_columns(columns: Vec<ArrayRef>) -> Vec<ArrayRef> {
    let column = |column: ArrayRef| -> ArrayRef {
        let any = column.as_any();
        match column.data_type() {
            DataType::Float64 => match any.downcast_ref::<Float64Array>() {
                Some(values) => {
                    Arc::new(values.unary::<_, arrow_array::types::Float64Type>(one_zero))
                }
                None => column,
            },
            DataType::Float32 => match any.downcast_ref::<Float32Array>() {
                Some(values) => {
                    Arc::new(values.unary::<_, arrow_array::types::Float32Type>(|value| {
                        one_zero(f64::from(value)) as f32
                    }))
                }
                None => column,
            },
            _ => column,
        }
    };
    columns.into_iter().map(column).collect()
}
