//! Kiefer's memory-access experiments (Kiefer 2013, section 3).

#![forbid(unsafe_code)]
