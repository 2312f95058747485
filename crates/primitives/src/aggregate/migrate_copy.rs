//! Migration and copy (Li 2013, section 4.3): workers go where the rows are, and before they begin
//! there they copy their tables into that node's memory. Rows and tables are local then.

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
    travel::run(context, own, pieces, Luggage::Tables).await
}
