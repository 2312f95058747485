//! The parts of PL/pgSQL.

use super::condition::Condition;

/// `DECLARE … BEGIN … EXCEPTION WHEN … THEN … END`
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::session) struct Block {
    pub(super) label: Option<String>,
    pub(super) declarations: Vec<Declaration>,
    pub(super) steps: Vec<Step>,
    pub(super) handlers: Vec<Handler>,
}

/// `a CONSTANT INT NOT NULL := 1`
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Declaration {
    pub(super) name: String,
    /// The text of its type.
    pub(super) of: String,
    pub(super) is_constant: bool,
    pub(super) is_not_null: bool,
    pub(super) default: Option<String>,
}

/// `WHEN a OR b THEN …`
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Handler {
    pub(super) conditions: Vec<Condition>,
    pub(super) steps: Vec<Step>,
}

/// A variable, or a field of one: `a`, `r.b`, `label.a`.
pub(super) type Target = Vec<String>;

/// The variables that take the first row of a statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IntoClause {
    pub(super) is_strict: bool,
    pub(super) targets: Vec<Target>,
}

/// A statement whose rows are used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    Sql(String),
    /// EXECUTE of the value of an expression, with the values of others as `$1`, ….
    Dynamic {
        text: String,
        using: Vec<String>,
    },
}

/// What a loop runs over.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head {
    Forever,
    While(String),
    Numbers { variable: String, is_reverse: bool, from: String, to: String, by: Option<String> },
    Rows { targets: Vec<Target>, source: Source },
}

/// A statement of a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A statement of SQL.
    Sql {
        source: Source,
        into: Option<IntoClause>,
    },
    /// A query whose rows are discarded.
    Perform(String),
    Assign {
        target: Target,
        value: String,
    },
    /// The conditions in order, each with its steps, and those of ELSE.
    If {
        branches: Vec<(String, Vec<Step>)>,
        otherwise: Vec<Step>,
    },
    /// The same, where a case without ELSE must be found.
    Case {
        branches: Vec<(String, Vec<Step>)>,
        otherwise: Option<Vec<Step>>,
    },
    Loop {
        label: Option<String>,
        head: Head,
        steps: Vec<Step>,
    },
    /// EXIT and CONTINUE.
    Leave {
        is_continue: bool,
        label: Option<String>,
        when: Option<String>,
    },
    Return(Option<String>),
    ReturnNext(Option<String>),
    ReturnQuery(Source),
    /// GET DIAGNOSTICS, of the last statement or of the handled error.
    Diagnostics {
        is_stacked: bool,
        items: Vec<(Target, String)>,
    },
    Block(Block),
    Raise(Message),
    /// RAISE of the handled error.
    Again,
    Null,
}

/// `RAISE NOTICE 'a % b', x USING HINT = 'c'`
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    /// Whether it is an error, and else a notice.
    pub(super) is_error: bool,
    /// Whether clients see it: not below NOTICE.
    pub(super) is_shown: bool,
    /// The text around the values of the arguments.
    pub(super) parts: Vec<String>,
    pub(super) arguments: Vec<String>,
    /// The code of the error, if it is named.
    pub(super) code: Option<String>,
    /// The expressions after USING, by the words before them.
    pub(super) using: Vec<(String, String)>,
}
