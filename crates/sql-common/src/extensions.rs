//! Data that higher modules attach to objects of lower modules.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// One value per type. A module attaches its own data to an object that need not know about it: for example session
/// templates and shared scans to the database.
#[derive(Debug, Default)]
pub struct Extensions(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Extensions {
    /// Returns the value of a type; the first caller creates it.
    ///
    /// # Errors
    /// Those of `make`; the next caller tries again.
    pub fn get_or_try_init<T: Send + Sync + 'static, E>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let mut values = self.0.lock();
        if let Some(value) = values.get(&TypeId::of::<T>()).cloned()
            && let Ok(value) = value.downcast()
        {
            return Ok(value);
        }
        let value = Arc::new(make()?);
        values.insert(TypeId::of::<T>(), Arc::clone(&value) as _);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_and_a_failure_is_not_kept() {
        let extensions = Extensions::default();
        assert_eq!(extensions.get_or_try_init(|| Err::<u32, _>("no")), Err("no"));
        assert_eq!(extensions.get_or_try_init(|| Ok::<u32, &str>(1)), Ok(Arc::new(1)));
        assert_eq!(extensions.get_or_try_init(|| Ok::<u32, &str>(2)), Ok(Arc::new(1)));
        assert_eq!(extensions.get_or_try_init(|| Ok::<u64, &str>(3)), Ok(Arc::new(3)));
    }
}
