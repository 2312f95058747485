//! Amounts of memory as people type them.

use atoll_topology::{Bytes, BytesError};

/// Reads `8GiB`, `512 MB`, `1.5g` or a number of bytes, as [`Bytes`] does.
pub fn parse(text: &str) -> Result<Bytes, BytesError> {
    text.parse()
}
