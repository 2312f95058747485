//! Writes records to disk. Three states: all synced, written but not synced, stopped by an error.

use super::buffer::LogBatch;
use super::space::LogSpace;
use super::{LogError, Position};

/// Writes batches of records and syncs them. The first error is final, except for a full disk before
/// anything is written: after a failed write or sync the state of the disk is unknown, and only recovery reads it.
#[derive(Debug)]
pub(super) struct LogWriter {
    space: LogSpace,
    written: Position,
    synced: Position,
    state: WriterState,
}

#[derive(Debug)]
enum WriterState {
    Synced,
    Written,
    Stopped(LogError),
}

impl LogWriter {
    /// A writer that continues at a position up to which everything is on disk.
    pub(super) fn new(space: LogSpace, end: Position) -> Self {
        Self { space, written: end, synced: end, state: WriterState::Synced }
    }

    pub(super) fn synced(&self) -> Position {
        self.synced
    }

    pub(super) fn space(&self) -> &LogSpace {
        &self.space
    }

    /// Makes space for records up to a position, and some ahead. [`LogError::NoSpace`] is not final.
    pub(super) fn reserve(&mut self, end: Position) -> Result<(), LogError> {
        self.check()?;
        let made = self.space.make_ahead(end, self.synced);
        self.stop_on(made, |error| !matches!(error, LogError::NoSpace(_)))
    }

    /// Writes a batch, which begins where the last one ended.
    pub(super) fn write(&mut self, batch: &LogBatch) -> Result<(), LogError> {
        self.check()?;
        debug_assert_eq!(batch.start, self.written, "batches follow each other");
        let written = self.write_pieces(batch);
        self.stop_on(written, |_| true)?;
        if batch.end() > self.written {
            self.written = batch.end();
            self.state = WriterState::Written;
        }
        Ok(())
    }

    fn write_pieces(&mut self, batch: &LogBatch) -> Result<(), LogError> {
        self.space.make(batch.end(), self.synced)?;
        for segment in self.space.segments() {
            let start = batch.start.0.max(segment.range.start);
            let end = batch.end().0.min(segment.range.end);
            if start < end {
                let piece = (start - batch.start.0) as usize..(end - batch.start.0) as usize;
                segment.write(start, &batch.bytes[piece])?;
            }
        }
        Ok(())
    }

    /// Waits until everything written is on disk; returns the position up to which it is.
    pub(super) fn sync(&mut self) -> Result<Position, LogError> {
        match &self.state {
            WriterState::Stopped(error) => return Err(error.clone()),
            WriterState::Synced => return Ok(self.synced),
            WriterState::Written => {}
        }
        let synced = self.sync_segments();
        self.stop_on(synced, |_| true)?;
        self.synced = self.written;
        self.state = WriterState::Synced;
        self.space.forget_before(self.synced);
        Ok(self.synced)
    }

    fn sync_segments(&self) -> Result<(), LogError> {
        let is_written = |start, end| start < self.written.0 && end > self.synced.0;
        for segment in self.space.segments() {
            if is_written(segment.range.start, segment.range.end) {
                segment.file.sync_data()?;
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), LogError> {
        match &self.state {
            WriterState::Stopped(error) => Err(error.clone()),
            WriterState::Synced | WriterState::Written => Ok(()),
        }
    }

    fn stop_on(
        &mut self,
        done: Result<(), LogError>,
        is_final: impl Fn(&LogError) -> bool,
    ) -> Result<(), LogError> {
        if let Err(error) = &done
            && is_final(error)
        {
            self.state = WriterState::Stopped(error.stop());
        }
        done
    }
}
