//! Cost model: from what is known of a machine and the traffic on it to time.

#![forbid(unsafe_code)]
