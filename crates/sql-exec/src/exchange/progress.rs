//! The one run of an exchange, shared by the streams of its outputs.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{internal_datafusion_err, internal_err};
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;

use super::run::{Receiver, RunPlan};

/// How far an exchange has come.
#[derive(Default)]
pub(super) struct ExchangeProgress {
    stage: ExchangeStage,
    /// The outputs whose stream was dropped before it was polled.
    given_up: Vec<usize>,
}

#[derive(Default)]
enum ExchangeStage {
    /// No output has been requested.
    #[default]
    Idle,
    /// Outputs have been requested, none has been polled.
    Ready(Vec<SendableRecordBatchStream>),
    /// An output has been polled. Holds the receivers of the others.
    Running(Vec<Option<Receiver>>),
}

impl fmt::Debug for ExchangeProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stage {
            ExchangeStage::Idle => "Idle",
            ExchangeStage::Ready(_) => "Ready",
            ExchangeStage::Running(_) => "Running",
        })
    }
}

impl ExchangeProgress {
    /// Requests an output; the first request creates the streams of the input.
    pub(super) fn prepare(
        &mut self,
        input: &Arc<dyn ExecutionPlan>,
        output: usize,
        context: &Arc<TaskContext>,
    ) -> Result<()> {
        self.given_up.retain(|&given_up| given_up != output);
        if matches!(self.stage, ExchangeStage::Idle) {
            let inputs = 0..input.output_partitioning().partition_count();
            let streams = inputs.map(|at| input.execute(at, context.clone()));
            self.stage = ExchangeStage::Ready(streams.collect::<Result<_>>()?);
        }
        Ok(())
    }

    /// Polls an output; the first poll starts the loops over the input.
    fn take(&mut self, output: usize, plan: &RunPlan) -> Result<Receiver> {
        if let ExchangeStage::Ready(streams) = &mut self.stage {
            let receivers = plan.start(std::mem::take(streams));
            self.stage = ExchangeStage::Running(receivers.into_iter().map(Some).collect());
            for given_up in std::mem::take(&mut self.given_up) {
                self.give_up(given_up);
            }
        }
        let ExchangeStage::Running(receivers) = &mut self.stage else {
            return internal_err!("an exchange was polled before it was executed");
        };
        let receiver = receivers.get_mut(output).and_then(Option::take);
        receiver.ok_or_else(|| {
            internal_datafusion_err!(
                "output {output} of an exchange was already taken or does not exist"
            )
        })
    }

    /// Closes an output, which will not be polled any more.
    fn give_up(&mut self, output: usize) {
        match &mut self.stage {
            ExchangeStage::Running(receivers) => {
                drop(receivers.get_mut(output).and_then(Option::take))
            }
            _ => self.given_up.push(output),
        }
    }
}

/// The stream of one output.
pub(super) struct ExchangeOutput {
    output: usize,
    plan: RunPlan,
    progress: Arc<Mutex<ExchangeProgress>>,
    polled: bool,
    /// The rows, from the first poll on; `None` if it failed.
    receiver: Option<Receiver>,
}

impl ExchangeOutput {
    /// The stream of an output that was prepared; its first poll starts the run.
    pub(super) fn new(
        output: usize,
        plan: RunPlan,
        progress: Arc<Mutex<ExchangeProgress>>,
    ) -> Self {
        Self { output, plan, progress, polled: false, receiver: None }
    }
}

impl Stream for ExchangeOutput {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !self.polled {
            self.polled = true;
            let taken = self.progress.lock().take(self.output, &self.plan);
            match taken {
                Ok(receiver) => self.receiver = Some(receiver),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        match &mut self.receiver {
            Some(receiver) => receiver.poll_next_unpin(context),
            None => Poll::Ready(None),
        }
    }
}

impl RecordBatchStream for ExchangeOutput {
    fn schema(&self) -> SchemaRef {
        self.plan.schema.clone()
    }
}

impl Drop for ExchangeOutput {
    fn drop(&mut self) {
        if !self.polled {
            self.progress.lock().give_up(self.output);
        }
    }
}
