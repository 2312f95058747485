//! The ring shuffle (Li 2013, sections 3.1.2 and 4.3): workers read what all have for them round a
//! circle, each one place ahead of the one before, so that they spread over all nodes' memory.

use std::sync::Arc;

use super::partitioned::{Made, Partitioned, Pieces};
use super::pull;
use crate::shuffle::Order;
use crate::{Context, PrimitiveError};

/// Aggregates what was dealt.
pub(super) async fn run(
    context: &Context,
    own: &Arc<Partitioned>,
    pieces: &Arc<Pieces>,
) -> Result<Made, PrimitiveError> {
    pull::run(context, own, pieces, Order::Ring).await
}
