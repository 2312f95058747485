//! `pg_notify('channel', 'payload')`, `pg_listening_channels()`, `pg_notification_queue_usage()`.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use datafusion::arrow::array::{Array, AsArray, ListBuilder, StringArray, StringBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;

use crate::notifications::{Listener, Notification};
use crate::statement_handle::StatementHandle;

/// Sends a notification.
pub(crate) const NOTIFY: &str = "pg_notify";

/// The list that `pg_listening_channels()` returns as rows.
const CHANNELS: &str = "listening_channels";

const USAGE: &str = "pg_notification_queue_usage";

/// Whether a function is one of these, which `atoll.functions` does not list.
pub(crate) fn is_notification_function(name: &str) -> bool {
    [NOTIFY, CHANNELS, USAGE].contains(&name)
}

/// Registers the functions of a session that is known as a process.
pub(crate) fn register(context: &SessionContext, listener: &Arc<Listener>, process: u32) {
    let texts = Signature::exact(vec![DataType::Utf8, DataType::Utf8], Volatility::Volatile);
    let nullary = || Signature::nullary(Volatility::Stable);
    for (name, signature) in [(NOTIFY, texts), (CHANNELS, nullary()), (USAGE, nullary())] {
        let listener = Arc::downgrade(listener);
        let function = NotificationFunction { name, signature, listener, process };
        context.register_udf(ScalarUDF::new_from_impl(function));
    }
}

#[derive(Debug)]
struct NotificationFunction {
    name: &'static str,
    signature: Signature,
    /// What the session listens to: it ends with the session, though plans may still hold its functions.
    listener: Weak<Listener>,
    process: u32,
}

impl PartialEq for NotificationFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Weak::ptr_eq(&self.listener, &other.listener)
    }
}

impl Eq for NotificationFunction {}

impl Hash for NotificationFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl NotificationFunction {
    /// Sends a notification for each row; NULL is an empty text, as in PostgreSQL.
    fn notify(&self, args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some((transaction, _)) = StatementHandle::transaction_of(&args.config_options) else {
            return exec_err!("{} outside of a statement", self.name);
        };
        let texts = ColumnarValue::values_to_arrays(&args.args)?;
        let (channels, payloads) = (texts[0].as_string::<i32>(), texts[1].as_string::<i32>());
        let text = |texts: &StringArray, row: usize| match texts.is_null(row) {
            true => String::new(),
            false => texts.value(row).to_owned(),
        };
        // Scalar arguments are one row, whatever the number of rows.
        for row in 0..texts[0].len().min(args.number_rows) {
            let (channel, payload) = (text(channels, row), text(payloads, row));
            let notification = Notification::try_new(self.process, &channel, &payload)?;
            transaction.announce(|it| it.notify(notification))?;
        }
        Ok(ColumnarValue::Array(Arc::new(StringArray::from(vec![""; args.number_rows]))))
    }
}

impl ScalarUDFImpl for NotificationFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.name {
            NOTIFY => DataType::Utf8,
            CHANNELS => DataType::new_list(DataType::Utf8, true),
            _ => DataType::Float64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.name == NOTIFY {
            return self.notify(&args);
        }
        let Some(listener) = self.listener.upgrade() else {
            return exec_err!("the session of {} has ended", self.name);
        };
        if self.name == USAGE {
            return Ok(ColumnarValue::Scalar(ScalarValue::from(listener.usage())));
        }
        let mut lists = ListBuilder::new(StringBuilder::new());
        listener.channels().iter().for_each(|channel| lists.values().append_value(channel));
        lists.append(true);
        Ok(ColumnarValue::Scalar(ScalarValue::List(Arc::new(lists.finish()))))
    }
}
