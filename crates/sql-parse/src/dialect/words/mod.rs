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
//! Samples and limits are in `samples`, operators in `operators`, locks of rows in `locks`, tables like others in `like`,
//! the clauses of MERGE in `merge`.
//!
//! Tokens keep their positions, so that errors point into the original text.

mod like;
mod locks;
mod merge;
mod operators;
mod samples;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

use crate::dialect::statements::forms;

/// Rewrites the tokens of a statement; if the dialect is another product's (`is_mended` is false), it only
/// refuses what would be misread.
pub(crate) fn read(tokens: &mut Vec<TokenWithSpan>, is_mended: bool) -> Result<()> {
    let mut places: Vec<usize> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if !matches!(token.token, Token::Whitespace(_)) {
            places.push(at);
        }
    }
    let mut words = Words { tokens, places };
    let mut at = 0;
    while at < words.places.len() {
        words.refuse_global(at)?;
        if is_mended {
            words.struct_type(at);
            words.like(at);
            words.join(at);
            words.query_form(at);
            words.table_query(at);
            words.variable(at);
            words.macro_statement(at);
            words.by_name(at);
            words.merge_action(at);
            words.overriding(at);
            words.sample(at);
            words.limit(at);
            words.locks(at);
            words.exclude(at);
            words.glob(at);
            words.number(at);
        }
        at += 1;
    }
    Ok(())
}

/// The tokens that are not white space.
struct Words<'a> {
    tokens: &'a mut Vec<TokenWithSpan>,
    places: Vec<usize>,
}

impl Words<'_> {
    fn get(&self, at: usize) -> Option<&Token> {
        self.places.get(at).map(|place| &self.tokens[*place].token)
    }

    fn word(&self, at: usize) -> Option<&Word> {
        match self.get(at) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn is(&self, at: usize, name: &str) -> bool {
        self.word(at)
            .is_some_and(|word| word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name))
    }

    fn set(&mut self, at: usize, token: Token) {
        let place = self.places[at];
        self.tokens[place].token = token;
    }

    /// The position of the matching closing parenthesis.
    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for at in open..self.places.len() {
            match self.get(at)? {
                Token::LParen => depth += 1,
                Token::RParen => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// `STRUCT(name type, …)` and `ROW(name type, …)`: the parser expects angle brackets for them.
    fn struct_type(&mut self, at: usize) {
        let is_struct = self.is(at, "STRUCT") || self.is(at, "ROW");
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

    /// Joins that the parser does not support.
    fn join(&mut self, at: usize) {
        if at > 0 && self.is(at - 1, "AS") {
            return;
        }
        if self.is(at, "POSITIONAL") && self.is(at + 1, "JOIN") {
            self.set(at, keyword("GLOBAL"));
            let mut cross = self.tokens[self.places[at]].clone();
            cross.token = keyword("CROSS");
            self.insert(at + 1, cross);
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
        let sets = at == 0 && (self.is(0, "SET") || self.is(0, "RESET")) && self.is(1, "VARIABLE");
        if sets && self.word(2).is_some() {
            self.set(1, unquoted(super::VARIABLE));
            let mut period = self.tokens[self.places[1]].clone();
            period.token = Token::Period;
            self.insert(2, period);
        }
    }

    /// `CREATE FUNCTION f(x) AS x + 1` is CREATE MACRO, and DROP MACRO [TABLE] is DROP FUNCTION.
    fn macro_statement(&mut self, at: usize) {
        if at != 0 {
            return;
        }
        if self.is(0, "DROP") && self.is(1, "MACRO") {
            self.set(1, keyword("FUNCTION"));
            if self.is(2, "TABLE") {
                self.remove(2);
            }
        }
        let mut next = 1;
        if !self.is(0, "CREATE") {
            return;
        }
        while ["OR", "REPLACE", "TEMP", "TEMPORARY"].iter().any(|word| self.is(next, word)) {
            next += 1;
        }
        let is_language = || {
            (next..self.places.len()).any(|at| self.is(at, "RETURNS") || self.is(at, "LANGUAGE"))
        };
        if self.is(next, "FUNCTION") && !is_language() {
            self.set(next, keyword("MACRO"));
        }
    }

    /// `INSERT INTO t BY NAME` has the list of columns `("$by_name")`, which the session fills.
    fn by_name(&mut self, at: usize) {
        if !(self.is(at, "BY") && self.is(at + 1, "NAME")) {
            return;
        }
        if at > 0 && ["UNION", "ALL", "DISTINCT"].iter().any(|word| self.is(at - 1, word)) {
            return;
        }
        let mut before = at;
        while before > 0 && matches!(self.get(before - 1), Some(Token::Word(_) | Token::Period)) {
            before -= 1;
            if self.is(before, "INTO") {
                let mut end = self.tokens[self.places[at + 1]].clone();
                self.set(at, Token::LParen);
                self.set(at + 1, unquoted(super::BY_NAME));
                end.token = Token::RParen;
                self.insert(at + 2, end);
                return;
            }
        }
    }

    /// `INSERT INTO t OVERRIDING SYSTEM VALUE` has a partition of that name, which the session takes out.
    fn overriding(&mut self, at: usize) {
        let Some(name) = self.overriding_kind(at) else { return };
        let partition = vec![keyword("PARTITION"), Token::LParen, quoted(name), Token::RParen];
        self.replace(at, at + 3, partition);
    }

    /// The name of the OVERRIDING clause that begins here.
    fn overriding_kind(&self, at: usize) -> Option<&'static str> {
        let kinds = [("SYSTEM", super::OVERRIDING_SYSTEM), ("USER", super::OVERRIDING_USER)];
        let (_, name) = kinds.into_iter().find(|(kind, _)| self.is(at + 1, kind))?;
        (self.is(at, "OVERRIDING") && self.is(at + 2, "VALUE")).then_some(name)
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
        let mut place = self.tokens[self.places[at]].clone();
        place.token = Token::RParen;
        match end < self.places.len() {
            true => self.insert(end, place.clone()),
            false => self.push(place.clone()),
        }
        self.set(at, unquoted(form));
        let mut put = |words: &mut Self, token: Token| {
            place.token = token;
            words.insert(at, place.clone());
        };
        put(self, Token::LParen);
        put(self, unquoted(forms::QUERY));
        put(self, keyword("FROM"));
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
            return self.select_all(at);
        }
        let is_union =
            |at: usize| ["UNION", "EXCEPT", "INTERSECT"].iter().any(|word| self.is(at, word));
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

    /// `SELECT * FROM` in place of TABLE: after INSERT the parser expects a SELECT.
    fn select_all(&mut self, at: usize) {
        let mut from = self.tokens[self.places[at]].clone();
        from.token = keyword("FROM");
        let star = TokenWithSpan { token: Token::Mul, ..from.clone() };
        self.set(at, keyword("SELECT"));
        self.insert(at + 1, star);
        self.insert(at + 2, from);
    }

    /// Whether the query of `INSERT INTO name` is here.
    fn is_insert_of(&self, at: usize) -> bool {
        let is_of_name = |at: usize| match self.get(at) {
            Some(Token::Period) => true,
            Some(Token::Word(word)) => word.keyword != Keyword::TABLE,
            _ => false,
        };
        self.is(0, "INSERT") && self.is(1, "INTO") && at > 2 && (2..at).all(is_of_name)
    }

    /// The end of a form: the parenthesis around it, or the ORDER BY of its rows.
    fn form_end(&self, from: usize, takes_query: bool) -> usize {
        let mut depth = 0_usize;
        for at in from..self.places.len() {
            match self.get(at) {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) if depth == 0 => return at,
                Some(Token::RParen) => depth -= 1,
                Some(Token::SemiColon | Token::EOF) if depth == 0 => return at,
                Some(Token::Word(word)) if depth == 0 && !takes_query => {
                    let ends = matches!(
                        word.keyword,
                        Keyword::ORDER
                            | Keyword::LIMIT
                            | Keyword::OFFSET
                            | Keyword::UNION
                            | Keyword::EXCEPT
                            | Keyword::INTERSECT
                            | Keyword::FETCH
                    );
                    if ends && word.quote_style.is_none() {
                        return at;
                    }
                }
                _ => {}
            }
        }
        self.places.len()
    }

    fn push(&mut self, token: TokenWithSpan) {
        self.places.push(self.tokens.len());
        self.tokens.push(token);
    }

    fn remove(&mut self, at: usize) {
        let place = self.places.remove(at);
        self.tokens[place].token = Token::Whitespace(Whitespace::Space);
    }

    fn insert(&mut self, at: usize, token: TokenWithSpan) {
        let place = self.places[at];
        self.tokens.insert(place, token);
        self.places.insert(at, place);
        for later in &mut self.places[at + 1..] {
            *later += 1;
        }
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
