//! One partition, fed to its consumer by a task at the partition's home.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use atoll_runtime::Runtime;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::exec_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use datafusion::physical_plan::metrics::BaselineMetrics;
use futures::{Stream, StreamExt};
use tokio::sync::mpsc;

use super::homes::worker_of;
use atoll_sql_common::task::{BoundTask, unpanicked};

/// Batches that a partition may be ahead of its reader: one is read while the next is made.
const BATCHES_AHEAD: usize = 2;

/// The stream of one partition, polled at its home.
pub(super) struct AtHome {
    runtime: Runtime,
    partition: usize,
    schema: SchemaRef,
    feed: RowFeed,
    metrics: BaselineMetrics,
}

/// The source of the rows.
enum RowFeed {
    /// Before the first poll.
    Unpolled(SendableRecordBatchStream),
    /// From the task at home, until it says that it is done.
    Polled(
        mpsc::Receiver<Message>,
        #[expect(dead_code, reason = "held for its drop")] BoundTask<()>,
    ),
    /// After the last row or an error.
    Done,
}

/// A message of the task at home.
enum Message {
    Batch(RecordBatch),
    /// The last message. It distinguishes a task that finished from one that was aborted.
    End(Result<()>),
}

impl AtHome {
    /// Passes the stream of a partition on; its first poll spawns the task.
    pub(super) fn new(
        runtime: Runtime,
        partition: usize,
        stream: SendableRecordBatchStream,
        metrics: BaselineMetrics,
    ) -> Self {
        let schema = stream.schema();
        Self { runtime, partition, schema, feed: RowFeed::Unpolled(stream), metrics }
    }

    /// The channel to the task, which the first call spawns; `None` when all is done.
    fn channel(&mut self) -> Option<&mut mpsc::Receiver<Message>> {
        if let RowFeed::Unpolled(_) = self.feed
            && let RowFeed::Unpolled(stream) = std::mem::replace(&mut self.feed, RowFeed::Done)
        {
            let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
            let task = self.runtime.spawn_on(worker_of(self.partition), forward(stream, sender));
            self.feed = RowFeed::Polled(receiver, BoundTask::new(task));
        }
        match &mut self.feed {
            RowFeed::Polled(receiver, _) => Some(receiver),
            _ => None,
        }
    }

    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let Some(channel) = self.channel() else { return Poll::Ready(None) };
        let ended = match ready!(channel.poll_recv(context)) {
            Some(Message::Batch(batch)) => return Poll::Ready(Some(Ok(batch))),
            Some(Message::End(ended)) => ended,
            None => Err(cut_off(self.partition)),
        };
        self.feed = RowFeed::Done;
        Poll::Ready(ended.err().map(Err))
    }
}

fn cut_off(partition: usize) -> DataFusionError {
    exec_datafusion_err!("the worker of partition {partition} was stopped before the query ended")
}

/// Sends all of `stream`, until it ends or the receiver is gone.
async fn forward(stream: SendableRecordBatchStream, sender: mpsc::Sender<Message>) {
    let ended = unpanicked("a worker", forward_batches(stream, &sender)).await;
    // A closed receiver is the normal end of a query with a limit.
    drop(sender.send(Message::End(ended)).await);
}

async fn forward_batches(
    mut stream: SendableRecordBatchStream,
    sender: &mpsc::Sender<Message>,
) -> Result<()> {
    while let Some(batch) = stream.next().await.transpose()? {
        if sender.send(Message::Batch(batch)).await.is_err() {
            break;
        }
    }
    Ok(())
}

impl Stream for AtHome {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let poll = self.poll_batch(context);
        self.metrics.record_poll(poll)
    }
}

impl RecordBatchStream for AtHome {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
