//! Queries that several engines run in turn, each engine in its own process; Atoll is the first.
//!
//! | File | Owns |
//! |---|---|
//! | `engines` | the processes, and what they report of themselves |
//! | `rounds` | a query in rounds, its answers compared value by value |
//! | `bandwidth` | how fast memory can be read |
//! | `times` | times, ratios, sums and means |
//! | `markdown` | the tables that people read |

mod bandwidth;
mod engines;
mod markdown;
mod rounds;
mod times;

pub(crate) use bandwidth::ReadBandwidth;
pub(crate) use engines::{EngineMeasured, EnginePrograms, finish, worker};
pub(crate) use rounds::{QueryRounds, measure_query};
pub(crate) use times::{QueryRuns, TimedQueries};
