//! The report as tables in Markdown.
//!
//! | File | Owns |
//! |---|---|
//! | `throughput` | each query under each arm, and the one beside it |
//! | `placement` | where instances were, the moves of their threads, their balance over time |
//! | `paper` | the published figures and statements |

pub(super) mod paper;
pub(super) mod placement;
pub(super) mod throughput;
