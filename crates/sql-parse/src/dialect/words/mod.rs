//! Replaces words that the parser does not support by those that it does, before it reads them.
//!
//! ```text
//! STRUCT(a INT, b TEXT[])      STRUCT<a INT, b TEXT[]>
//! a POSITIONAL JOIN b          a GLOBAL CROSS JOIN b          read by `positional`
//! a ASOF LEFT JOIN b ON …      a GLOBAL LEFT JOIN b ON …
//! (SUMMARIZE t)                (FROM $query($summarize t))    read by `forms`
//! TABLE t UNION TABLE u        FROM t UNION FROM u
//! ```
//!
//! Assignments of elements of arrays are in `assignments`, names of declared columns and quoted types in `columns`, samples
//! and limits in `samples`, operators in `operators`, locks of rows in `locks`, tables like others in `like`, the clauses of
//! MERGE in `merge`.

mod assignments;
mod columns;
mod like;
mod locks;
mod merge;
mod operators;
mod samples;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Word};

use crate::dialect::statements::forms;
use crate::syntax::Tokens;

/// Rewrites the tokens of a statement; if the dialect is another product's (`is_mended` is false), it only
/// refuses what would be misread.
pub(crate) fn read(tokens: &mut Tokens, is_mended: bool) -> Result<()> {
    let mut at = 0;
    while at < tokens.len() {
        tokens.refuse_global(at)?;
        if is_mended {
            tokens.struct_type(at);
            tokens.like(at);
            tokens.deferrable(at);
            tokens.declared_column(at);
            tokens.quoted_type(at);
            tokens.array_type(at);
            tokens.interval_digits(at);
            tokens.join(at);
            tokens.query_form(at);
            tokens.table_query(at);
            tokens.variable(at);
            tokens.macro_statement(at);
            tokens.by_name(at);
            tokens.merge_action(at);
            tokens.with_data(at);
            tokens.overriding(at);
            tokens.conflict_target(at);
            tokens.included(at);
            tokens.sample(at);
            tokens.limit(at);
            tokens.locks(at);
            tokens.exclude(at);
            tokens.glob(at);
            tokens.number(at);
            tokens.element_assignment(at);
        }
        at += 1;
    }
    Ok(())
}

impl Tokens {
    /// `STRUCT(name type, …)` and `ROW(name type, …)`: the parser expects angle brackets for them.
    fn struct_type(&mut self, at: usize) {
        let is_struct = self.is_any(at, &["STRUCT", "ROW"]);
        if !is_struct || self.get(at + 1) != Some(&Token::LParen) || !self.is_field(at + 2) {
            return;
        }
        let Some(close) = self.closing(at + 1) else { return };
        self.set(at, keyword("STRUCT"));
        self.set(at + 1, Token::Lt);
        self.set(close, Token::Gt);
    }

    /// Whether a name and a type are here: two words, the second of which is not an operator.
    fn is_field(&self, at: usize) -> bool {
        let starts = self.word(at).is_some_and(|first| {
            !matches!(first.keyword, Keyword::CASE | Keyword::NOT | Keyword::SELECT | Keyword::CAST)
        });
        starts && self.word(at + 1).is_some() && !self.is_operator(at + 1)
    }

    /// Whether the word here is an operator, or begins a clause.
    fn is_operator(&self, at: usize) -> bool {
        let Some(word) = self.word(at) else { return false };
        let is_operator = matches!(
            word.keyword,
            Keyword::AS
                | Keyword::AND
                | Keyword::OR
                | Keyword::IS
                | Keyword::IN
                | Keyword::NOT
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::BETWEEN
                | Keyword::COLLATE
                | Keyword::AT
                | Keyword::SIMILAR
                | Keyword::WHEN
                | Keyword::FROM
                | Keyword::ORDER
                | Keyword::OVER
        );
        word.quote_style.is_none() && is_operator
    }

    /// `[NOT] DEFERRABLE` of a transaction, which only SERIALIZABLE READ ONLY ones heed in PostgreSQL.
    fn deferrable(&mut self, at: usize) {
        let is_begun = self.is_any(0, &["BEGIN", "START"])
            || (self.is(0, "SET") && self.is_any(1, &["TRANSACTION", "SESSION", "LOCAL"]));
        if at < 1 || !self.is(at, "DEFERRABLE") || !is_begun {
            return;
        }
        let first = if self.follows(at, "NOT") { at - 1 } else { at };
        let is_listed = self.get(first - 1) == Some(&Token::Comma);
        self.remove(if is_listed { first - 1 } else { first }..at + 1);
    }

    /// Joins that the parser does not support.
    fn join(&mut self, at: usize) {
        if self.follows(at, "AS") {
            return;
        }
        if self.are(at, &["POSITIONAL", "JOIN"]) {
            self.set(at, keyword("GLOBAL"));
            self.insert(at + 1, keyword("CROSS"));
        } else if self.is(at, "ASOF") && self.is_join(at + 1) {
            self.set(at, keyword("GLOBAL"));
        }
    }

    /// The word that marks our own joins.
    fn refuse_global(&self, at: usize) -> Result<()> {
        match self.is(at, "GLOBAL") && self.is_join(at + 1) {
            true => plan_err!("GLOBAL JOIN is not supported; leave GLOBAL out"),
            false => Ok(()),
        }
    }

    /// `SET VARIABLE x = …` and `RESET VARIABLE x` name the variable `$variable.x`.
    fn variable(&mut self, at: usize) {
        if at == 0 && self.is(0, "ABORT") {
            self.set(0, keyword("ROLLBACK"));
        }
        let sets = at == 0 && self.is_any(0, &["SET", "RESET"]) && self.is(1, "VARIABLE");
        if sets && self.word(2).is_some() {
            self.set(1, unquoted(super::VARIABLE));
            self.insert(2, Token::Period);
        }
    }

    /// `CREATE FUNCTION f(x) AS x + 1` is CREATE MACRO, and DROP MACRO [TABLE] is DROP FUNCTION.
    fn macro_statement(&mut self, at: usize) {
        if at != 0 {
            return;
        }
        if self.are(0, &["DROP", "MACRO"]) {
            self.set(1, keyword("FUNCTION"));
            if self.is(2, "TABLE") {
                self.remove(2..3);
            }
        }
        let mut next = 1;
        if !self.is(0, "CREATE") {
            return;
        }
        while self.is_any(next, &["OR", "REPLACE", "TEMP", "TEMPORARY"]) {
            next += 1;
        }
        let is_language = || (next..self.len()).any(|at| self.is_any(at, &["RETURNS", "LANGUAGE"]));
        if self.is(next, "FUNCTION") && !is_language() {
            self.set(next, keyword("MACRO"));
        }
    }

    /// `INSERT INTO t BY NAME` has the list of columns `("$by_name")`, which the session fills.
    fn by_name(&mut self, at: usize) {
        if at == 0
            || !self.are(at, &["BY", "NAME"])
            || self.is_any(at - 1, &["UNION", "ALL", "DISTINCT"])
        {
            return;
        }
        let mut before = at;
        while before > 0 && matches!(self.get(before - 1), Some(Token::Word(_) | Token::Period)) {
            before -= 1;
            if self.is(before, "INTO") {
                let list = [Token::LParen, unquoted(super::BY_NAME), Token::RParen];
                return self.replace(at..at + 2, list);
            }
        }
    }

    /// `INSERT INTO t OVERRIDING SYSTEM VALUE` has a partition of that name, which the session takes out.
    fn overriding(&mut self, at: usize) {
        let Some(name) = self.overriding_kind(at) else { return };
        let partition = vec![keyword("PARTITION"), Token::LParen, quoted(name), Token::RParen];
        self.replace(at..at + 3, partition);
    }

    /// `ON CONFLICT (lower(a)) WHERE b IS NULL` has the column `"$conflict_target(lower(a)) WHERE b IS NULL"`, which the
    /// session reads.
    fn conflict_target(&mut self, at: usize) {
        if !self.are(at, &["ON", "CONFLICT"]) || self.get(at + 2) != Some(&Token::LParen) {
            return;
        }
        let Some(close) = self.closing(at + 2) else { return };
        let is_plain = |at| matches!(self.get(at), Some(Token::Word(_) | Token::Comma));
        let mut end = close + 1;
        if self.is(end, "WHERE") {
            while end < self.len()
                && !(self.is(end, "DO") && self.is_any(end + 1, &["NOTHING", "UPDATE"]))
            {
                end += 1;
            }
        } else if (at + 3..close).all(is_plain) {
            return;
        }
        let text = (at + 2..end).filter_map(|at| Some(self.get(at)?.to_string()));
        let text = text.collect::<Vec<_>>().join(" ");
        let target = Token::Word(Word {
            value: format!("{}{text}", super::CONFLICT_TARGET),
            quote_style: Some('"'),
            keyword: Keyword::NoKeyword,
        });
        self.replace(at + 2..end, [Token::LParen, target, Token::RParen]);
    }

    /// `UNIQUE (a) INCLUDE (b)` is `UNIQUE (a, "$include", b)`, which the session reads.
    fn included(&mut self, at: usize) {
        if !self.is(at, "INCLUDE") || self.get(at + 1) != Some(&Token::LParen) || at < 3 {
            return;
        }
        let Some(open) = self.opening(at - 1).filter(|open| *open > 0) else { return };
        let is_key =
            self.is(open - 1, "UNIQUE") || (open > 1 && self.are(open - 2, &["PRIMARY", "KEY"]));
        if is_key {
            self.replace(at - 1..at + 2, [Token::Comma, quoted(super::INCLUDE), Token::Comma]);
        }
    }

    /// The name of the OVERRIDING clause that begins here.
    fn overriding_kind(&self, at: usize) -> Option<&'static str> {
        let kinds = [("SYSTEM", super::OVERRIDING_SYSTEM), ("USER", super::OVERRIDING_USER)];
        let (_, name) = kinds.into_iter().find(|(kind, _)| self.is(at + 1, kind))?;
        (self.is(at, "OVERRIDING") && self.is(at + 2, "VALUE")).then_some(name)
    }

    /// Takes WITH DATA and WITH NO DATA from the end of CREATE MATERIALIZED VIEW: the session finds them in the text.
    fn with_data(&mut self, at: usize) {
        if at != 0 || !(self.is(0, "CREATE") && self.is(1, "MATERIALIZED")) {
            return;
        }
        let is_end = |at: &usize| matches!(self.get(*at), Some(Token::SemiColon | Token::EOF));
        let end = (0..self.len()).find(is_end).unwrap_or(self.len());
        let data = end.saturating_sub(1);
        let with = data.saturating_sub(1 + usize::from(self.is(data.saturating_sub(1), "NO")));
        if self.is(data, "DATA") && self.is(with, "WITH") {
            self.remove(with..end);
        }
    }

    /// A statement that is a query in DuckDB.
    fn query_form(&mut self, at: usize) {
        const FORMS: [(&str, &str); 7] = [
            ("PIVOT", forms::PIVOT),
            ("PIVOT_WIDER", forms::PIVOT),
            ("UNPIVOT", forms::UNPIVOT),
            ("PIVOT_LONGER", forms::UNPIVOT),
            ("SUMMARIZE", forms::SUMMARIZE),
            ("DESCRIBE", forms::DESCRIBE),
            ("DESC", forms::DESCRIBE),
        ];
        let Some((word, form)) = FORMS.into_iter().find(|(word, _)| self.is(at, word)) else {
            return;
        };
        if !self.starts_query(at, word) {
            return;
        }
        // Elsewhere it is the direction of a sort, or an alias.
        if word == "DESC" && at > 0 && self.get(at - 1) != Some(&Token::LParen) {
            return;
        }
        let end = self.form_end(at + 1, word.ends_with("IZE") || word.starts_with("DESC"));
        self.insert(end, Token::RParen);
        let begin = [keyword("FROM"), unquoted(forms::QUERY), Token::LParen, unquoted(form)];
        self.replace(at..at + 1, begin);
    }

    /// Whether a query may begin with the word here, and no operator follows.
    fn starts_query(&self, at: usize, word: &str) -> bool {
        let follows = match self.get(at + 1) {
            Some(Token::Word(_)) => !self.is_operator(at + 1),
            Some(Token::LParen) => true,
            Some(Token::SingleQuotedString(_) | Token::DoubleQuotedString(_)) => true,
            _ => false,
        };
        let is_call = self.get(at + 1) == Some(&Token::LParen);
        if !follows {
            return false;
        }
        let Some(before) = at.checked_sub(1) else { return true };
        match self.get(before) {
            Some(Token::LParen) => !is_call,
            Some(Token::RParen) => {
                word.contains("PIVOT")
                    && !is_call
                    && !self.is(at + 1, "INCLUDE")
                    && !self.is(at + 1, "EXCLUDE")
            }
            Some(Token::Word(word)) => {
                matches!(word.keyword, Keyword::AS | Keyword::EXPLAIN | Keyword::ANALYZE)
            }
            _ => false,
        }
    }

    /// `TABLE t` where a query may begin.
    fn table_query(&mut self, at: usize) {
        let Some(name) = self.word(at + 1).filter(|_| self.is(at, "TABLE")) else { return };
        // `table` may also be the name of a column or an alias, which keywords follow.
        let is_name = name.keyword == Keyword::NoKeyword;
        if is_name && self.is_insert_of(at) {
            // After INSERT the parser expects a SELECT.
            return self.replace(at..at + 1, [keyword("SELECT"), Token::Mul, keyword("FROM")]);
        }
        let is_union = |at: usize| self.is_any(at, &["UNION", "EXCEPT", "INTERSECT"]);
        let begins = match at.checked_sub(1).and_then(|before| self.get(before)) {
            None => true,
            Some(Token::LParen | Token::RParen) => is_name,
            Some(Token::Word(before)) => match before.keyword {
                Keyword::AS => is_name,
                Keyword::EXPLAIN | Keyword::ANALYZE | Keyword::VERBOSE => self.is(0, "EXPLAIN"),
                Keyword::ALL | Keyword::DISTINCT => at > 1 && is_union(at - 2),
                _ => is_union(at - 1),
            },
            _ => false,
        };
        if begins {
            self.set(at, keyword("FROM"));
        }
    }

    /// Whether the query of `INSERT INTO name` is here.
    fn is_insert_of(&self, at: usize) -> bool {
        let is_of_name = |at: usize| match self.get(at) {
            Some(Token::Period) => true,
            Some(Token::Word(word)) => word.keyword != Keyword::TABLE,
            _ => false,
        };
        self.are(0, &["INSERT", "INTO"]) && at > 2 && (2..at).all(is_of_name)
    }

    /// The end of a form: the parenthesis around it, or the ORDER BY of its rows.
    fn form_end(&self, from: usize, takes_query: bool) -> usize {
        const CLAUSES: [&str; 7] =
            ["ORDER", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT", "FETCH"];
        let ends = |at: &usize| match self.get(*at) {
            Some(Token::RParen | Token::SemiColon | Token::EOF) => true,
            _ => !takes_query && self.is_any(*at, &CLAUSES),
        };
        self.outside_parentheses(from).find(ends).unwrap_or(self.len())
    }

    /// Whether a join begins here.
    fn is_join(&self, at: usize) -> bool {
        match self.word(at).map(|word| word.keyword) {
            Some(Keyword::JOIN) => true,
            Some(
                Keyword::INNER | Keyword::LEFT | Keyword::RIGHT | Keyword::FULL | Keyword::CROSS,
            ) => self.is_join(at + 1) || self.is(at + 1, "OUTER"),
            _ => false,
        }
    }
}

/// A name that cannot be typed.
fn unquoted(value: &str) -> Token {
    let (value, quote_style, keyword) = (value.to_owned(), None, Keyword::NoKeyword);
    Token::Word(Word { value, quote_style, keyword })
}

/// The same, for texts that are parsed again.
fn quoted(value: &str) -> Token {
    let (value, quote_style, keyword) = (value.to_owned(), Some('"'), Keyword::NoKeyword);
    Token::Word(Word { value, quote_style, keyword })
}

/// A keyword.
fn keyword(name: &str) -> Token {
    Token::make_keyword(name)
}
