//! Parameters as offsets of window frames: `ROWS $1 PRECEDING`. DataFusion plans only constants there, so their values
//! are written into the statement before it is planned.

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    DataType, Expr, Value, VisitorMut, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowType,
};

use super::frames::{self, offset_of, parameter_of};
use crate::syntax::{flow, walk_mut};

/// A parameter that is the offset of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameParameter {
    /// Its name: `$1`.
    pub name: String,
    /// How the frame counts.
    pub units: WindowFrameUnits,
    /// Whether the statement casts it to INTERVAL.
    pub is_interval: bool,
}

/// What takes the place of a parameter.
#[derive(Clone, Debug)]
pub enum FrameOffset {
    /// Its value.
    Value(Expr),
    /// An offset for a statement that is only planned.
    StandIn(Expr),
    /// A number by which the frame is found in a plan; the frame counts rows, so that any key has it.
    Probe(Expr),
}

/// Replaces the parameters in the frames of a statement, and checks frames with their values.
///
/// # Errors
/// Those of `replaced`, and for values that a frame cannot have.
pub fn replace_frame_parameters(
    statement: &mut Parsed,
    replaced: &mut dyn FnMut(FrameParameter) -> Result<FrameOffset>,
) -> Result<()> {
    if let Parsed::Explain(explain) = statement {
        return replace_frame_parameters(&mut explain.statement, replaced);
    }
    let mut frames = FrameParameters(replaced);
    let visited = match statement {
        Parsed::Statement(statement) => walk_mut(statement, &mut frames),
        Parsed::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => walk_mut(query, &mut frames),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Parsed::Explain(_) | Parsed::CreateExternalTable(_) | Parsed::Reset(_) => {
            ControlFlow::Continue(())
        }
    };
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct FrameParameters<'a>(&'a mut dyn FnMut(FrameParameter) -> Result<FrameOffset>);

impl FrameParameters<'_> {
    /// Replaces the parameters of a frame; whether it has values now that need a check.
    fn replace(&mut self, frame: &mut WindowFrame) -> Result<bool> {
        let (mut is_valued, mut is_probe) = (false, false);
        let bounds = [Some(&mut frame.start_bound), frame.end_bound.as_mut()];
        for bound in bounds.into_iter().flatten() {
            let Some((name, cast)) = offset_of(bound).and_then(parameter_of) else { continue };
            let is_interval = matches!(cast, Some(DataType::Interval { .. }));
            let parameter =
                FrameParameter { name: name.to_owned(), units: frame.units, is_interval };
            let replaced = (self.0)(parameter)?;
            let (WindowFrameBound::Preceding(Some(offset))
            | WindowFrameBound::Following(Some(offset))) = bound
            else {
                continue;
            };
            match replaced {
                FrameOffset::StandIn(stand_in) => **offset = stand_in,
                FrameOffset::Probe(number) => {
                    **offset = number;
                    is_probe = true;
                }
                FrameOffset::Value(value) => {
                    write_value(offset, value);
                    is_valued = true;
                }
            }
        }
        if is_probe {
            count_rows(frame);
        }
        Ok(is_valued)
    }
}

/// Makes a frame count rows; an offset that is not a number becomes one.
fn count_rows(frame: &mut WindowFrame) {
    frame.units = WindowFrameUnits::Rows;
    let bounds = [Some(&mut frame.start_bound), frame.end_bound.as_mut()];
    for bound in bounds.into_iter().flatten() {
        let (WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset))) =
            bound
        else {
            continue;
        };
        let is_number =
            matches!(&**offset, Expr::Value(value) if matches!(value.value, Value::Number(..)));
        if !is_number {
            **offset = Expr::value(Value::Number("0".to_owned(), false));
        }
    }
}

/// Writes a value in the place of the parameter, within the casts.
fn write_value(offset: &mut Expr, value: Expr) {
    match offset {
        Expr::Nested(inner)
        | Expr::UnaryOp { expr: inner, .. }
        | Expr::Cast { expr: inner, .. } => write_value(inner, value),
        other => *other = value,
    }
}

impl VisitorMut for FrameParameters<'_> {
    type Break = DataFusionError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let Some(WindowType::WindowSpec(spec)) = &mut function.over else {
            return ControlFlow::Continue(());
        };
        let Some(frame) = &mut spec.window_frame else { return ControlFlow::Continue(()) };
        flow(self.replace(frame).and_then(|is_valued| match is_valued {
            true => frames::check(spec),
            false => Ok(()),
        }))
    }
}
