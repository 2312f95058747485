//! What a marker is: the instruction's bytes, what decoding refuses, and that Rust's functions and C's
//! macros contain the very bytes that the counter decodes.

mod c_header;
mod instruction;
mod machine_code;
