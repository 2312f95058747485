//! Values of sequences for transactions.

use std::sync::Arc;

use super::own::OwnBase;
use super::{Result, Transaction};
use crate::change::ChangeStep;
use crate::change::SequenceState;
use crate::database::values::{ended, sequence_is_gone};
use crate::ids::SequenceId;

impl Transaction {
    /// The next value of a sequence. It is given once, even if the transaction is rolled back.
    pub async fn next_value(&mut self, sequence: SequenceId) -> Result<i64> {
        self.check_writable("nextval()")?;
        if let Some(own) = self.own_sequence(sequence)? {
            return self.next_own_value(sequence, &own);
        }
        let database = Arc::clone(&self.database);
        let (value, position) = database.next_value(sequence).await?;
        self.read_to = self.read_to.max(position);
        Ok(value)
    }

    /// A sequence that the transaction created or altered: no other transaction sees it.
    fn own_sequence(&mut self, sequence: SequenceId) -> Result<Option<Arc<SequenceState>>> {
        if self.own.is_empty() {
            return Ok(None);
        }
        let newest = self.read_newest();
        let own = self.own.on(OwnBase::Newest, &newest, &self.database.environment)?;
        let Some(own) = own.sequence(sequence) else { return Err(sequence_is_gone(sequence)) };
        let committed = newest.sequence(sequence);
        let is_own = committed.is_none_or(|committed| committed.generation != own.generation);
        Ok(is_own.then(|| Arc::clone(own)))
    }

    fn next_own_value(&mut self, sequence: SequenceId, own: &SequenceState) -> Result<i64> {
        let newest = self.read_newest();
        let version = self.own.on(OwnBase::Newest, &newest, &self.database.environment)?;
        let Some(value) = own.definition.after(own.last) else {
            return Err(ended(&version, sequence, own));
        };
        let step = ChangeStep::Sequence(sequence, value);
        let mut after = (*version).clone();
        after.apply_step(&step, &self.database.environment)?;
        self.keep(step, &newest, after)?;
        Ok(value)
    }
}
