//! `\\copy`, whose files need no quotes.

/// Words that replace a file name.
const STREAMS: [&str; 3] = ["stdin", "stdout", "program"];

/// The COPY statement for a command.
pub(in crate::shell) fn statement(argument: &str) -> String {
    let argument = argument.trim_end_matches([';', ' ']);
    match file(argument) {
        Some((start, end)) => {
            let file = argument[start..end].replace('\'', "''");
            format!("COPY {}'{file}'{}", &argument[..start], &argument[end..])
        }
        None => format!("COPY {argument}"),
    }
}

/// Position of a file without quotes: after the first FROM or TO outside of quotes and parentheses.
fn file(argument: &str) -> Option<(usize, usize)> {
    let (mut quote, mut depth, mut start) = (None, 0_usize, 0);
    let mut is_named = false;
    let end = argument.len();
    for (at, letter) in argument.char_indices().chain([(end, ' ')]) {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            (None, letter) if letter.is_whitespace() && depth == 0 => {
                let word = &argument[start..at];
                if is_named && !word.is_empty() {
                    let is_file = !word.starts_with('\'')
                        && !STREAMS.iter().any(|stream| word.eq_ignore_ascii_case(stream));
                    return is_file.then_some((start, at));
                }
                is_named |= ["from", "to"].iter().any(|it| word.eq_ignore_ascii_case(it));
                start = at + letter.len_utf8();
            }
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unquoted_files_get_quotes() {
        for (typed, sql) in [
            ("t from data.csv csv header", "COPY t from 'data.csv' csv header"),
            ("t (a, b) TO '/x/a b.csv'", "COPY t (a, b) TO '/x/a b.csv'"),
            ("(select a from t) to its.csv;", "COPY (select a from t) to 'its.csv'"),
            ("\"from\" from stdin", "COPY \"from\" from stdin"),
            ("t to STDOUT", "COPY t to STDOUT"),
            ("t", "COPY t"),
            ("", "COPY "),
        ] {
            assert_eq!(statement(typed), sql, "{typed}");
        }
    }
}
