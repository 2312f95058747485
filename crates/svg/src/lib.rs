//! SVG pictures: valid XML without scripts, references or embedded fonts, on white.
//!
//! | Module | What it has |
//! |---|---|
//! | [`canvas`] | shapes and escaped text on panels, which are put together |
//! | [`chart`] | curves in a frame with scales |
//! | [`heat`] | a matrix as a heat map |
//! | [`palette`] | colours that people with any kind of colour vision tell apart |
//! | [`ring`] | nodes around a ring, linked ones near each other |
//!
//! It is a crate of its own because several crates draw, and none of them should know the others for it.

#![forbid(unsafe_code)]

pub mod canvas;
pub mod chart;
pub mod heat;
pub mod palette;
pub mod ring;
