//! Detects the syntax of a file by trying candidates on its first records.
//!
//! A delimiter is right where it cuts all records into the same number of values, of which there are at
//! least two. Records before these are a preamble.

use std::io::Cursor;

use super::options::CsvSettings;
use super::records::{CsvRecord, CsvSyntax, RecordReader};

/// Delimiters in the order in which they are preferred.
const DELIMITERS: [u8; 4] = [b',', b'|', b';', b'\t'];

/// Records that are looked at.
const RECORDS: usize = 1000;

/// The result of reading the first records with a syntax.
#[derive(Clone, Copy, Debug)]
struct Trial {
    syntax: CsvSyntax,
    /// Lines before the first record with as many values as the others.
    skip: usize,
    columns: usize,
    /// Records per 1000, from the first on, that have as many values.
    share: usize,
    /// Records with faulty quotes.
    flaws: usize,
    /// Records in which a value has quotes.
    quoted: usize,
}

impl Trial {
    fn run(head: &[u8], syntax: CsvSyntax, settings: &CsvSettings) -> Self {
        let mut reader = RecordReader::new(Cursor::new(head), syntax, settings.line_max);
        let _ = reader.skip_lines(settings.skip.unwrap_or(0));
        let (mut record, mut counts) = (CsvRecord::default(), Vec::new());
        let (mut flaws, mut quoted) = (0, 0);
        while counts.len() < RECORDS && reader.read(&mut record).unwrap_or(false) {
            flaws += usize::from(record.flaw.is_some());
            quoted += usize::from(record.has_quotes());
            if !record.is_blank() {
                counts.push((record.len(), record.line));
            }
        }
        let columns = most_frequent(&counts, settings.padding);
        let fits = |count: usize| count == columns || settings.padding && count < columns;
        // From the first record on after which all fit, or else from the first that fits.
        let misfit = counts.iter().rposition(|(count, _)| !fits(*count)).map_or(0, |at| at + 1);
        let first = counts.iter().position(|(count, _)| *count == columns).unwrap_or(0);
        let whole =
            misfit < counts.len() && (misfit == 0 || counts.len() - misfit >= 2 || misfit <= 2);
        let is_preamble = |at: usize| counts[..at].iter().all(|(count, _)| *count < columns);
        let start = if whole && is_preamble(misfit) { misfit } else { first };
        let rest = &counts[start.min(counts.len())..];
        let fitting = rest.iter().filter(|(count, _)| fits(*count)).count();
        let share = fitting * 1000 / rest.len().max(1);
        let line = counts.get(start).map_or(1, |(_, line)| *line as usize);
        let skip = if settings.skip.is_some() || start == 0 { 0 } else { line - 1 };
        Self { syntax, skip, columns, share, flaws, quoted }
    }

    /// The greater trial is better.
    fn rank(&self) -> (bool, bool, usize, std::cmp::Reverse<usize>, usize) {
        let several = self.columns > 1 && self.share > 500;
        let fewer_skipped = std::cmp::Reverse(self.skip);
        (several, self.flaws == 0, self.share, fewer_skipped, self.columns)
    }
}

fn most_frequent(counts: &[(usize, u64)], padding: bool) -> usize {
    if padding {
        return counts.iter().map(|(count, _)| *count).max().unwrap_or(1);
    }
    let mut frequencies = std::collections::BTreeMap::new();
    for (count, _) in counts {
        *frequencies.entry(*count).or_insert(0) += 1;
    }
    let best = frequencies.into_iter().max_by_key(|(count, frequency)| (*frequency, *count));
    best.map_or(1, |(count, _)| count)
}

/// The syntax of a file, and the lines to skip before its first record; `head` is its beginning, in
/// whole lines.
pub(super) fn sniff(head: &[u8], settings: &CsvSettings) -> (CsvSyntax, usize) {
    let given = settings.syntax();
    if !settings.auto_detect {
        return (given, 0);
    }
    let delimiters = match settings.delimiter {
        Some(delimiter) => vec![delimiter],
        None => DELIMITERS.to_vec(),
    };
    let quotes = match (settings.quote, settings.escape) {
        (Some(quote), Some(escape)) => vec![(quote, escape)],
        (Some(quote), None) => vec![(quote, None), (quote, Some(b'\\'))],
        (None, Some(escape)) => vec![(Some(b'"'), escape)],
        (None, None) => {
            vec![(Some(b'"'), None), (Some(b'"'), Some(b'\\')), (Some(b'\''), None)]
        }
    };
    let begins_with =
        |byte: u8| head.first() == Some(&byte) || head.windows(2).any(|it| it == [b'\n', byte]);
    let comments = match settings.comment {
        Some(comment) => vec![comment],
        None if begins_with(b'#') => vec![None, Some(b'#')],
        None => vec![None],
    };
    let mut best: Option<Trial> = None;
    for comment in comments {
        for (quote, escape) in &quotes {
            for delimiter in &delimiters {
                let syntax = CsvSyntax {
                    delimiter: *delimiter,
                    quote: *quote,
                    escape: *escape,
                    comment,
                    ..given
                };
                let trial = Trial::run(head, syntax, settings);
                // An unusual quote or escape needs a reason.
                let unusual = *quote == Some(b'\'') && settings.quote.is_none();
                let has_reason = !unusual || trial.quoted > 0 && trial.flaws == 0;
                if has_reason && best.is_none_or(|best| trial.rank() > best.rank()) {
                    best = Some(trial);
                }
            }
        }
    }
    match best {
        Some(best) if best.columns > 1 => (best.syntax, best.skip),
        // One column: no delimiter occurs.
        Some(best) => {
            let delimiter = settings.delimiter.unwrap_or(b',');
            (CsvSyntax { delimiter, ..best.syntax }, 0)
        }
        None => (given, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_sql_parse::syntax::FileOptions;

    fn sniffed(text: &str) -> (char, usize) {
        let settings = CsvSettings::from_options(&FileOptions::default()).expect("valid options");
        let (syntax, skip) = sniff(text.as_bytes(), &settings);
        (syntax.delimiter as char, skip)
    }

    #[test]
    fn delimiters_are_found() {
        assert_eq!(sniffed("a,b\n1,2\n"), (',', 0));
        assert_eq!(sniffed("a;b\n1,5;2\n3,5;4\n"), (';', 0));
        assert_eq!(sniffed("a\tb c\n1\t2\n"), ('\t', 0));
        assert_eq!(sniffed("a|b\n\"x,y\"|2\n"), ('|', 0));
        assert_eq!(sniffed("a\n1\n2\n"), (',', 0));
        assert_eq!(sniffed("a,b\n1,2\n3,4\n5\n"), (',', 0));
        assert_eq!(sniffed(""), (',', 0));
    }

    #[test]
    fn lines_before_the_table_are_skipped() {
        assert_eq!(sniffed("Report of May\n\na,b\n1,2\n3,4\n"), (',', 2));
        // These are comments, which are skipped wherever they are.
        assert_eq!(sniffed("# made by x\n# on Monday\na;b\n1;2\n"), (';', 0));
    }

    #[test]
    fn quotes_are_found() {
        let settings = CsvSettings::from_options(&FileOptions::default()).expect("valid options");
        let quotes = |text: &str| {
            let (syntax, _) = sniff(text.as_bytes(), &settings);
            (syntax.quote.map(char::from), syntax.escape.map(char::from))
        };
        assert_eq!(quotes("a,b\n'x,y',2\n'z,',3\n"), (Some('\''), None));
        assert_eq!(quotes("a,b\n\"x\\\",y\",2\n"), (Some('"'), Some('\\')));
        assert_eq!(quotes("a,b\nit's,2\n"), (Some('"'), None));
    }
}
