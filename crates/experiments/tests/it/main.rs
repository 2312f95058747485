//! Plans on every fake machine; runs on a simulated kernel and on the real one; the paper's figures;
//! calibration against numbers solved by hand; pictures.

mod pictures;
mod plans;
mod reproduction;
mod runs;
