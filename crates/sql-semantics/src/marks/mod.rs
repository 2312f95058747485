//! Types that Arrow lacks, such as UUID and JSON, as marks of expressions and parameters.
//!
//! ```text
//! coalesce(id, $1)        with_type(coalesce(id, $1), 'uuid')
//! unnest(ids)             with_type(unnest(ids), 'uuid')
//! uuid_checked($1)        $1 of type UUID
//! INSERT … SELECT $1      $1 of the type of the column
//! '{…}'::UUID[]           checked_items(ARRAY['…'], 'uuid')
//! t AT TIME ZONE 'UTC'    timetz_at_zone('UTC', t), of a TIMETZ
//! ```

mod functions;
mod kept;
mod parameters;
mod zoned_times;

pub(crate) use functions::{named, with_type};
pub(crate) use kept::keep_marks;
pub(crate) use parameters::inserted_parameters;
