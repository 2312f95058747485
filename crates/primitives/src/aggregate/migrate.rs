//! Migration (Li 2013, sections 3.2 and 4.3): workers go where the rows are and take nothing along.
//! Rows are read from local memory; the table that they go to stays where its worker began.

use std::sync::Arc;

use super::partitioned::{Made, Partitioned, Pieces};
use super::travel::{self, Luggage};
use crate::{Context, PrimitiveError};

/// Aggregates what was dealt.
pub(super) async fn run(
    context: &Context,
    own: &Arc<Partitioned>,
    pieces: &Arc<Pieces>,
) -> Result<Made, PrimitiveError> {
    travel::run(context, own, pieces, Luggage::Nothing).await
}
