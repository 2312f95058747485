//! The counted arms by the paper's names.

use super::Counted;
use crate::Operation;

/// Bytes of the paper's MB: its arrays are powers of two.
const MB: u64 = 1 << 20;

/// Arms that table 1 names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arms<'a>(pub(super) &'a [Counted]);

impl<'a> Arms<'a> {
    /// The arm of a row's baseline or contrast.
    pub(super) fn find(
        self,
        (experiment, operation, mb): (u8, Operation, u64),
        setting: &str,
    ) -> Option<&'a Counted> {
        self.0.iter().find(|counted| {
            let arm = &counted.arm;
            let is_setting =
                arm.setting == setting || arm.setting.starts_with(&format!("{setting} ("));
            (arm.experiment, arm.operation, arm.size.0) == (experiment, operation, mb * MB)
                && is_setting
        })
    }
}
