//! Values that a statement carries in its options for the functions that it calls.

/// Makes a type an extension of DataFusion's options that no setting names.
#[macro_export]
macro_rules! statement_extension {
    ($type:ty, $prefix:literal) => {
        impl datafusion::common::config::ConfigExtension for $type {
            const PREFIX: &'static str = $prefix;
        }

        impl datafusion::common::config::ExtensionOptions for $type {
            fn as_any(&self) -> &dyn std::any::Any {
                self
            }

            fn as_any_mut(&mut self) -> &mut dyn std::any::Any {
                self
            }

            fn cloned(&self) -> Box<dyn datafusion::common::config::ExtensionOptions> {
                Box::new(self.clone())
            }

            fn set(&mut self, key: &str, _: &str) -> datafusion::common::Result<()> {
                datafusion::common::config_err!("'{}.{key}' is not a setting", $prefix)
            }

            fn entries(&self) -> Vec<datafusion::common::config::ConfigEntry> {
                Vec::new()
            }
        }
    };
}
