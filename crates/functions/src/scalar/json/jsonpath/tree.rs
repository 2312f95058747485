//! A parsed path.

use bigdecimal::BigDecimal;
use regex::Regex;

/// A path, and whether it ignores errors of structure.
#[derive(Debug)]
pub(super) struct JsonPath {
    pub(super) is_lax: bool,
    pub(super) root: Node,
}

/// An expression or a predicate.
#[derive(Debug)]
pub(super) enum Node {
    /// A value, and the steps from it.
    Steps(Box<Node>, Vec<Step>),
    /// `$`
    Root,
    /// `@`
    Current,
    /// The index of the last item of a list.
    Last,
    Null,
    Flag(bool),
    Number(BigDecimal),
    Text(String),
    Variable(String),
    /// `+a` or `-a`.
    Signed(Sign, Box<Node>),
    Arithmetic(Box<Node>, Operation, Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Exists(Box<Node>),
    IsUnknown(Box<Node>),
    Comparison(Box<Node>, Relation, Box<Node>),
    StartsWith(Box<Node>, Box<Node>),
    LikeRegex(Box<Node>, Regex),
}

/// A step from a value to others.
#[derive(Debug)]
pub(super) enum Step {
    /// `.key`
    Member(String),
    /// `.*`
    AnyMember,
    /// `[0, 1 to last]`
    Items(Vec<(Node, Option<Node>)>),
    /// `[*]`
    AnyItem,
    /// `.**`, from one level to another; None for the leaves.
    Below(Option<usize>, Option<usize>),
    /// `?(…)`
    Filter(Node),
    Call(Method),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Plus,
    Minus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Operation {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// An item method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Abs,
    Ceiling,
    Double,
    Floor,
    KeyValue,
    Size,
    Type,
}

impl Method {
    const NAMES: [(&str, Self); 7] = [
        ("abs", Self::Abs),
        ("ceiling", Self::Ceiling),
        ("double", Self::Double),
        ("floor", Self::Floor),
        ("keyvalue", Self::KeyValue),
        ("size", Self::Size),
        ("type", Self::Type),
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, method)| *method)
    }

    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, method)| *method == self).map_or("", |(name, _)| name)
    }
}

impl Node {
    /// Whether it is true, false or unknown.
    pub(super) fn is_predicate(&self) -> bool {
        matches!(
            self,
            Self::And(..)
                | Self::Or(..)
                | Self::Not(_)
                | Self::Exists(_)
                | Self::IsUnknown(_)
                | Self::Comparison(..)
                | Self::StartsWith(..)
                | Self::LikeRegex(..)
        )
    }
}
