//! A record for people and for programs.
//!
//! | File | Owns |
//! |---|---|
//! | `text` | tables for the terminal |
//! | `svg` | a picture |
//! | `compare` | two records side by side |
//! | `counts` | sums and shares of counts |
//! | `nothing` | why nothing was counted |
//! | `words` | numbers as people read them |
//! | `table` | columns |

mod compare;
mod counts;
mod nothing;
mod svg;
mod table;
mod text;
mod words;

pub use compare::{MeasureLine, MeasureUnit, RunComparison};
pub use svg::{svg, svg_pair};
pub use text::text;
