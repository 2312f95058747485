//! SVG pictures: valid XML without scripts, references or embedded fonts, on white.
//!
//! | Module | Contents |
//! |---|---|
//! | [`canvas`] | shapes and escaped text on panels, which are put together |
//! | [`chart`] | curves in a frame with scales |
//! | [`heat`] | a matrix as a heat map |
//! | [`palette`] | a palette safe for colour-blind readers |
//! | [`ring`] | nodes around a ring, linked ones near each other |
//!
//! It is a separate crate because several crates draw and should not depend on each other for it.

#![forbid(unsafe_code)]

pub mod canvas;
pub mod chart;
pub mod heat;
pub mod palette;
pub mod ring;
