//! The lab without an emulator.

mod describe;
mod record;
mod sample;
mod view;
