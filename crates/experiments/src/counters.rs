//! The processor's counters of the last-level cache, and the kernel's of migrations, for a thread.
//!
//! In which state a line was hit is not among them: the generic events do not count it, and the raw ones
//! (`MEM_LOAD_L3_HIT_RETIRED.XSNP_*`) count what other cores of the same package had, not other
//! packages. The lab counts the states.

use atoll_sys::{PerfCounter, PerfEvent};

/// Counters of the thread that opened them.
#[derive(Debug)]
pub(crate) struct CacheCounters {
    llc: Result<[PerfCounter; 2], String>,
    migrations: Option<PerfCounter>,
    switches: Option<PerfCounter>,
}

/// The counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CounterReading {
    pub(crate) llc_loads: Option<u64>,
    pub(crate) llc_misses: Option<u64>,
    pub(crate) migrations: Option<u64>,
    pub(crate) switches: Option<u64>,
}

impl CacheCounters {
    pub(crate) fn open() -> Self {
        let open = PerfCounter::open;
        let llc = open(PerfEvent::LlcLoads)
            .and_then(|loads| Ok([loads, open(PerfEvent::LlcLoadMisses)?]))
            .map_err(|error| error.to_string());
        let migrations = open(PerfEvent::Migrations).ok();
        let switches = open(PerfEvent::ContextSwitches).ok();
        Self { llc, migrations, switches }
    }

    /// Why there are none of the last-level cache.
    pub(crate) fn missing(&self) -> Option<&str> {
        self.llc.as_ref().err().map(String::as_str)
    }

    /// Whether they count each slice separately.
    pub(crate) fn has_llc(&self) -> bool {
        self.llc.is_ok()
    }

    pub(crate) fn read(&self) -> CounterReading {
        let one = |counter: &PerfCounter| counter.read().ok();
        let llc = self.llc.as_ref().ok();
        CounterReading {
            llc_loads: llc.and_then(|[loads, _]| one(loads)),
            llc_misses: llc.and_then(|[_, misses]| one(misses)),
            migrations: self.migrations.as_ref().and_then(one),
            switches: self.switches.as_ref().and_then(one),
        }
    }
}

impl CounterReading {
    /// The counts since then.
    pub(crate) fn since(self, before: Self) -> Self {
        let less = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            llc_loads: less(self.llc_loads, before.llc_loads),
            llc_misses: less(self.llc_misses, before.llc_misses),
            migrations: less(self.migrations, before.migrations),
            switches: less(self.switches, before.switches),
        }
    }
}
