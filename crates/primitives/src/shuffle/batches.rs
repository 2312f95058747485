//! A shuffle of Arrow batches.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchOptions};
use atoll_placement::Arena;
use atoll_topology::{Bytes, NodeId};

use super::{Moved, Schedule, ShuffleReport, Shuffled};
use crate::kernel::arrays;
use crate::{Context, Part, PrimitiveError};

/// Delivers to every worker its batches.
///
/// `pieces` are indexed by source, then by recipient: as many of both as there are workers. The result is indexed by
/// recipient, then by source, whatever the order of the shuffle, so that a source's rows stay together.
///
/// Pulled batches, and those that threads go to, are passed on without reading them; their homes are those of the
/// pieces. Pushed ones are copied into memory on the recipient's node, visible rows only, and these reads are counted.
///
/// # Errors
/// [`PrimitiveError::Shape`] if the pieces are not workers × workers, [`PrimitiveError::Memory`] if pushed ones do not
/// fit, and [`PrimitiveError::Cancelled`].
pub async fn batches(
    context: &Context,
    schedule: &Schedule,
    pieces: Vec<Vec<Part>>,
) -> Result<(Vec<Vec<Part>>, ShuffleReport), PrimitiveError> {
    let workers = schedule.workers();
    check(&pieces, workers)?;
    let pieces = Arc::new(pieces);
    let got: Arc<Vec<Mutex<Option<Part>>>> =
        Arc::new((0..workers * workers).map(|_| Mutex::new(None)).collect());
    let (arena, pushed) = (context.arena().clone(), schedule.shuffle().moved == Moved::Pushed);
    let (targets, given) = (schedule.clone(), Arc::clone(&got));
    let visited = schedule.run(context, "batches", vec![(); workers], move |(), visit, task| {
        let piece = &pieces[visit.source.index()][visit.worker.index()];
        let part = match pushed {
            false => piece.clone(),
            true => {
                let home = targets.home(visit.worker);
                let (rows, bytes) = copied(&piece.rows, &arena, home)?;
                task.count_read(piece.home.unwrap_or(targets.home(visit.source)), bytes);
                Part::new(home, rows)
            }
        };
        let at = visit.worker.index() * workers + visit.source.index();
        *given[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(part);
        Ok(())
    });
    let Shuffled { report, .. } = visited.await?;
    let take = |at: usize| got[at].lock().unwrap_or_else(PoisonError::into_inner).take();
    let of_worker = |worker| (0..workers).filter_map(|at| take(worker * workers + at)).collect();
    Ok(((0..workers).map(of_worker).collect(), report))
}

fn check(pieces: &[Vec<Part>], workers: usize) -> Result<(), PrimitiveError> {
    let wrong = pieces.iter().map(Vec::len).find(|count| *count != workers);
    let (what, found) = match wrong {
        _ if pieces.len() != workers => ("sources of a shuffle", pieces.len()),
        Some(count) => ("pieces of a source", count),
        None => return Ok(()),
    };
    let (found, expected) = (found.to_string(), workers.to_string());
    Err(PrimitiveError::Shape { what: what.to_owned(), found, expected })
}

fn copied(
    rows: &RecordBatch,
    arena: &Arena,
    home: NodeId,
) -> Result<(RecordBatch, Bytes), PrimitiveError> {
    let (columns, bytes) = arrays::placed(rows.columns(), arena, home)?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok((RecordBatch::try_new_with_options(rows.schema(), columns, &options)?, bytes))
}
