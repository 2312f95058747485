//! The naive shuffle (Li 2013, sections 3.1.1 and 4.3): every worker reads what the first one has for
//! it, then what the second one has, and so on. All are at one node's memory at a time.

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
    pull::run(context, own, pieces, Order::Naive).await
}
