//! Named windows. DataFusion 55.2 supports them only in the select list: in ORDER BY and QUALIFY it drops
//! the OVER, and it drops the name in `OVER (w ORDER BY x)`. Here each name is replaced by its window.

use datafusion::common::{Result, plan_datafusion_err, plan_err};
use datafusion::sql::sqlparser::ast::{
    Function, Ident, NamedWindowDefinition, NamedWindowExpr, WindowSpec, WindowType,
};

/// The WINDOW clauses of the queries around the visited node, the innermost last.
#[derive(Default)]
pub(super) struct Windows(Vec<Vec<NamedWindowDefinition>>);

impl Windows {
    pub(super) fn enter(&mut self, windows: &[NamedWindowDefinition]) {
        self.0.push(windows.to_vec());
    }

    pub(super) fn leave(&mut self) {
        self.0.pop();
    }

    /// Replaces the name of a function's window by the window.
    pub(super) fn resolve(&self, function: &mut Function) -> Result<()> {
        let spec = match &function.over {
            Some(WindowType::NamedWindow(name)) => self.named(name, 0)?,
            Some(WindowType::WindowSpec(spec)) if spec.window_name.is_some() => {
                self.extended(spec, 0)?
            }
            _ => return Ok(()),
        };
        function.over = Some(WindowType::WindowSpec(spec));
        Ok(())
    }

    fn named(&self, name: &Ident, depth: usize) -> Result<WindowSpec> {
        let windows = self.0.last().map(Vec::as_slice).unwrap_or_default();
        let found = windows.iter().find(|window| is_same(&window.0, name));
        let window = found.ok_or_else(|| plan_datafusion_err!("window '{name}' is not defined"))?;
        // A chain longer than the number of windows is a cycle.
        if depth > windows.len() {
            return plan_err!("window '{name}' is defined in terms of itself");
        }
        match &window.1 {
            NamedWindowExpr::NamedWindow(other) => self.named(other, depth + 1),
            NamedWindowExpr::WindowSpec(spec) => self.extended(spec, depth + 1),
        }
    }

    /// A window with the clauses of the one that it names.
    fn extended(&self, spec: &WindowSpec, depth: usize) -> Result<WindowSpec> {
        let Some(name) = &spec.window_name else { return Ok(spec.clone()) };
        let base = self.named(name, depth)?;
        if !spec.partition_by.is_empty() {
            return plan_err!("PARTITION BY of window '{name}' cannot be replaced");
        }
        if !base.order_by.is_empty() && !spec.order_by.is_empty() {
            return plan_err!("ORDER BY of window '{name}' cannot be replaced");
        }
        if base.window_frame.is_some() {
            return plan_err!("window '{name}' has a frame and cannot be extended");
        }
        let order_by = if spec.order_by.is_empty() { base.order_by } else { spec.order_by.clone() };
        let (partition_by, window_frame) = (base.partition_by, spec.window_frame.clone());
        Ok(WindowSpec { window_name: None, partition_by, order_by, window_frame })
    }
}

fn is_same(a: &Ident, b: &Ident) -> bool {
    match (a.quote_style, b.quote_style) {
        (None, None) => a.value.eq_ignore_ascii_case(&b.value),
        _ => a.value == b.value,
    }
}
