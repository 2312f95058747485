//! Functions that read or change the state of their session.

mod advisory;
mod notifications;
mod sequences;
mod settings;
mod transaction_ids;

pub(crate) use advisory::{is_lock_function, register as register_advisory};
pub(crate) use notifications::{
    NOTIFY, is_notification_function, register as register_notifications,
};
pub(crate) use sequences::{NextNumber, register as register_sequences, sequence_named};
pub(crate) use settings::{is_setting_function, register as register_settings};
pub(crate) use transaction_ids::{is_transaction_function, register as register_transaction_ids};
