//! Loops.

use datafusion::common::{Result, ScalarValue};

use super::run::{BlockRun, Flow};
use super::statements::cells_of;
use super::tree::{Head, Source, Step, Target};
use super::variables::{Cell, Scope, Variable, VariableType};
use atoll_sql_common::error::stated_err;

/// The numbers of a loop.
struct Numbers {
    /// `None` after the last one that there is.
    next: Option<i64>,
    last: i64,
    by: i64,
    is_reverse: bool,
}

impl Iterator for Numbers {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let number = self.next?;
        let is_past = if self.is_reverse { number < self.last } else { number > self.last };
        if is_past {
            return None;
        }
        let step = if self.is_reverse { -self.by } else { self.by };
        self.next = number.checked_add(step);
        Some(number)
    }
}

impl BlockRun<'_> {
    pub(super) async fn run_loop(
        &mut self,
        label: Option<&str>,
        head: &Head,
        steps: &[Step],
    ) -> Result<Flow> {
        match head {
            Head::Forever => loop {
                if let Some(flow) = self.round(label, steps).await? {
                    return Ok(flow);
                }
            },
            Head::While(condition) => {
                while self.holds(condition).await? {
                    if let Some(flow) = self.round(label, steps).await? {
                        return Ok(flow);
                    }
                }
                Ok(Flow::Next)
            }
            Head::Numbers { variable, is_reverse, from, to, by } => {
                let (next, last) =
                    (self.bound(from, "lower").await?, self.bound(to, "upper").await?);
                let by = match by {
                    Some(by) => self.bound(by, "BY").await?,
                    None => 1,
                };
                if by <= 0 {
                    return stated_err!(
                        INVALID_PARAMETER,
                        "BY value of FOR loop must be greater than zero"
                    );
                }
                let numbers = Numbers { next: Some(next), last, by, is_reverse: *is_reverse };
                self.over_numbers((label, variable), numbers, steps).await
            }
            Head::Rows { targets, source } => self.over_rows(label, (targets, source), steps).await,
        }
    }

    /// Runs the steps once; how the loop ends, if it does. It lets others run first: the caller may give it up.
    async fn round(&mut self, label: Option<&str>, steps: &[Step]) -> Result<Option<Flow>> {
        tokio::task::yield_now().await;
        let is_own = |named: &Option<String>| named.is_none() || named.as_deref() == label;
        Ok(match self.steps(steps).await? {
            Flow::Next => None,
            Flow::Continue(named) if is_own(&named) => None,
            Flow::Exit(named) if is_own(&named) => Some(Flow::Next),
            flow => Some(flow),
        })
    }

    async fn bound(&mut self, expression: &str, what: &str) -> Result<i64> {
        let of = VariableType::Cast("bigint".to_owned());
        match self.converted(expression, &of).await?.value {
            ScalarValue::Int64(Some(number)) => Ok(number),
            _ => {
                let what = if what == "BY" { what.to_owned() } else { format!("{what} bound") };
                stated_err!(NULL_VALUE_NOT_ALLOWED, "{what} of FOR loop cannot be null")
            }
        }
    }

    /// The variable of the loop is its own.
    async fn over_numbers(
        &mut self,
        (label, name): (Option<&str>, &str),
        numbers: Numbers,
        steps: &[Step],
    ) -> Result<Flow> {
        let mut is_found = false;
        for number in numbers {
            is_found = true;
            let value = match i32::try_from(number) {
                Ok(number) => ScalarValue::Int32(Some(number)),
                Err(_) => ScalarValue::Int64(Some(number)),
            };
            let variable = Variable {
                name: name.to_owned(),
                of: VariableType::Cast("integer".to_owned()),
                is_constant: false,
                is_not_null: false,
                cell: Cell::new(value),
            };
            let label = label.map(str::to_owned);
            self.scopes.list.push(Scope { label: label.clone(), variables: vec![variable] });
            let done = self.round(label.as_deref(), steps).await;
            self.scopes.list.pop();
            if let Some(flow) = done? {
                self.set_found(true);
                return Ok(flow);
            }
        }
        self.set_found(is_found);
        Ok(Flow::Next)
    }

    async fn over_rows(
        &mut self,
        label: Option<&str>,
        (targets, source): (&[Target], &Source),
        steps: &[Step],
    ) -> Result<Flow> {
        let ran = self.run(source).await?;
        let mut is_found = false;
        for batch in &ran.batches {
            for row in 0..batch.num_rows() {
                is_found = true;
                let cells = cells_of(&ran.schema, batch, row)?;
                self.put_row(targets, cells).await?;
                if let Some(flow) = self.round(label, steps).await? {
                    self.set_found(true);
                    return Ok(flow);
                }
            }
        }
        self.set_found(is_found);
        Ok(Flow::Next)
    }
}
