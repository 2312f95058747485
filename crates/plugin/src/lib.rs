//! The QEMU plugin of the lab: tells a `Simulation` every access that a guest's user space makes.
