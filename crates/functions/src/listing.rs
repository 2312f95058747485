//! A function as a table entry: its documentation, and its identity.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, plan_datafusion_err};
use datafusion::logical_expr::{DocSection, Documentation};

use crate::sql_name;

/// A function in the reference, identified by its name.
pub(crate) struct Listing {
    name: &'static str,
    pub(crate) aliases: Vec<String>,
    pub(crate) documentation:
        LazyLock<Documentation, Box<dyn FnOnce() -> Documentation + Send + Sync>>,
}

impl Listing {
    pub(crate) fn new(
        name: &'static str,
        aliases: &[&str],
        arguments: &'static str,
        about: &'static str,
        example: &'static str,
    ) -> Self {
        let document = move || {
            let syntax = format!("{name}({arguments})");
            Documentation::builder(DocSection::default(), about, syntax)
                .with_sql_example(example)
                .build()
        };
        let aliases = aliases.iter().map(|&alias| alias.to_owned()).collect();
        Self { name, aliases, documentation: LazyLock::new(Box::new(document)) }
    }
}

/// The error for invalid arguments.
pub(crate) fn no_function(name: &str, given: &[DataType], arguments: &str) -> DataFusionError {
    let given: Vec<String> = given.iter().map(sql_name).collect();
    let given = given.join(", ");
    plan_datafusion_err!("function {name}({given}) does not exist; expected {name}({arguments})")
}

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Listing {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Listing {}

impl Hash for Listing {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// Compares functions of a type by their listings.
macro_rules! told_apart_by_listing {
    ($function:ident) => {
        impl std::fmt::Debug for $function {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($function), "({:?})"), self.listing)
            }
        }

        impl PartialEq for $function {
            fn eq(&self, other: &Self) -> bool {
                self.listing == other.listing
            }
        }

        impl Eq for $function {}

        impl std::hash::Hash for $function {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.listing.hash(state);
            }
        }
    };
}
pub(crate) use told_apart_by_listing;
