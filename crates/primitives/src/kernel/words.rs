//! Views the bytes of a [`NodeBuffer`](atoll_placement::NodeBuffer) as 64-bit words and rows of them.

/// Rows of `W` words in these bytes; excludes a remainder at the end.
///
/// # Panics
/// When the bytes do not start at a multiple of eight, as those of a `NodeBuffer` do.
pub(crate) fn rows<const W: usize>(bytes: &[u8]) -> &[[u64; W]] {
    check::<W>(bytes);
    // SAFETY: any bits are a valid u64, the start is aligned, and the rows do not reach beyond the
    // end.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / (8 * W)) }
}

/// The same, for writing.
///
/// # Panics
/// As [`rows`].
pub(crate) fn rows_mut<const W: usize>(bytes: &mut [u8]) -> &mut [[u64; W]] {
    check::<W>(bytes);
    // SAFETY: as in `rows`, and the borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / (8 * W)) }
}

/// The bits of signed integers.
pub(crate) fn of_ints(values: &[i64]) -> &[u64] {
    // SAFETY: both are 64 bits of which all patterns are valid.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// The bits of doubles.
pub(crate) fn of_floats(values: &[f64]) -> &[u64] {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// The bytes of views of strings.
pub(crate) fn bytes_of(views: &[u128]) -> &[u8] {
    // SAFETY: the bytes of a number are all initialised, and any start is aligned for them.
    unsafe { std::slice::from_raw_parts(views.as_ptr().cast(), size_of_val(views)) }
}

fn check<const W: usize>(bytes: &[u8]) {
    const { assert!(W > 0) }
    assert!(bytes.as_ptr().cast::<u64>().is_aligned(), "a buffer starts at a multiple of eight");
}
