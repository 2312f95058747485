//! `random()` and `setseed`: the same seed gives the same random numbers.
//!
//! A session without a seed uses DataFusion's numbers. With a seed, all numbers come from one generator, row by row;
//! which row gets which number is deterministic if one worker computes them.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use atoll_sys::SplitMix64;
use datafusion::arrow::array::{AsArray, Float64Array, StringArray};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::common::utils::take_function_args;
use datafusion::functions::math::random;
use datafusion::logical_expr::{
    ColumnarValue, DocSection, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::prelude::SessionContext;
use parking_lot::Mutex;

use crate::error::stated_err;

/// Registers the functions for a session.
pub fn register(context: &SessionContext) {
    let numbers = SeededNumbers::default();
    let built_in = random();
    context.register_udf(ScalarUDF::new_from_impl(Random { built_in, numbers: numbers.clone() }));
    let signature = Signature::exact(vec![DataType::Float64], Volatility::Volatile);
    context.register_udf(ScalarUDF::new_from_impl(SetSeed { signature, numbers }));
}

/// The generator of a session that has set a seed.
#[derive(Clone, Debug, Default)]
struct SeededNumbers(Arc<Mutex<Option<SplitMix64>>>);

impl PartialEq for SeededNumbers {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SeededNumbers {}

impl Hash for SeededNumbers {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// A number from 0 up to but not including 1.
fn share(random: &mut SplitMix64) -> f64 {
    (random.next() >> 11) as f64 / (1_u64 << 53) as f64
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Random {
    built_in: Arc<ScalarUDF>,
    numbers: SeededNumbers,
}

impl ScalarUDFImpl for Random {
    fn name(&self) -> &str {
        self.built_in.name()
    }

    fn signature(&self) -> &Signature {
        self.built_in.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.built_in.return_type(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.built_in.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut seeded = self.numbers.0.lock();
        let Some(generator) = seeded.as_mut() else {
            drop(seeded);
            return self.built_in.invoke_with_args(args);
        };
        let drawn: Float64Array = (0..args.number_rows).map(|_| Some(share(generator))).collect();
        Ok(ColumnarValue::Array(Arc::new(drawn)))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SetSeed {
    signature: Signature,
    numbers: SeededNumbers,
}

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    let about = "Seeds random() for the session: the same seed, a number from -1 to 1, gives the same numbers.";
    Documentation::builder(DocSection::default(), about, "setseed(seed)")
        .with_sql_example("setseed(0.5)")
        .build()
});

impl ScalarUDFImpl for SetSeed {
    fn name(&self) -> &str {
        "setseed"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&DOCUMENTATION)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [seeds] = take_function_args(self.name(), args.args)?;
        let seeds = seeds.into_array(args.number_rows)?;
        let seeds = seeds.as_primitive::<Float64Type>();
        for seed in seeds.iter().flatten() {
            if !(-1.0..=1.0).contains(&seed) {
                return stated_err!(
                    INVALID_PARAMETER,
                    "setseed parameter {seed} is out of allowed range [-1,1]"
                );
            }
            // Adding 0 makes -0 the same seed.
            *self.numbers.0.lock() = Some(SplitMix64::new((seed + 0.0).to_bits()));
        }
        let done: StringArray = seeds.iter().map(|seed| seed.map(|_| "")).collect();
        Ok(ColumnarValue::Array(Arc::new(done)))
    }
}
