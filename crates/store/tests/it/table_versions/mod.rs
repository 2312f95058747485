//! Versions of tables against a naive model: a map from row ids to values.
//!
//! | what is changed | how it is read |
//! |---|---|
//! | rows by themselves, chunks behind and between others, whole entries, everything | the view, as a scan reads it |
//! | in one transaction of several statements | rows and keys, one by one |
//! | while folds are under way | older versions, after everything else |

mod examples;
mod fixture;
mod model;
