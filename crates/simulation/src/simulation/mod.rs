//! The simulation's interface.

mod look_up;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use atoll_marker::Marker;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use crate::calibration::{Ranges, Witnesses};
use crate::core::SimulatedCore;
use crate::counters::{CountLedger, CounterCell, CounterLayout as Counters, Single, TAGS};
use crate::cpu::{Mark, SimulatedCpu, TICK};
use crate::filter::AccessFilter;
use crate::layout::{CpuLayout, SimulatedDomain};
use crate::llc::Llc;
use crate::ram::Ram;
use crate::regions::Regions;
use crate::series::{Clock, Sum};
use crate::summary::Summary;
use crate::tags::Tags;
use crate::{
    CalibrationError, CalibrationReport, Counting, REPORT_VERSION, Region, Report, Setup,
    SetupError,
};

/// A simulated machine. Each cpu reports its actions from a thread of its own; any thread may
/// ask for a report at any time.
pub struct Simulation {
    setup: Setup,
    line_shift: u32,
    /// The current scope of counting.
    ledger: AtomicUsize,
    cpus: Vec<CachePadded<SimulatedCpu>>,
    cores: Vec<CachePadded<Mutex<SimulatedCore>>>,
    domains: Vec<SimulatedDomain>,
    llc: Llc,
    counters: Counters,
    ram: Ram,
    witnesses: Mutex<Witnesses>,
    /// Set when the calibration has succeeded.
    ranges: OnceLock<Ranges>,
    tags: Tags,
    regions: Mutex<Regions>,
    /// The series of each region, and finally the total.
    clocks: Vec<Clock>,
}

/// One access.
#[derive(Clone, Copy)]
struct MemoryAccess {
    address: u64,
    bytes: u32,
    is_store: bool,
}

impl Simulation {
    /// A machine with empty caches that counts nothing until it is calibrated.
    ///
    /// # Errors
    ///
    /// If the set-up is invalid ([`Setup::check`]).
    pub fn new(setup: Setup) -> Result<Self, SetupError> {
        setup.check()?;
        let (layout, ram) = (CpuLayout::new(&setup), Ram::new(&setup));
        let counters = Counters { nodes: setup.nodes.len(), links: setup.links };
        let filters: Vec<_> =
            setup.cpus.iter().map(|_| Arc::new(AccessFilter::new(setup.line))).collect();
        let core = |cpus: &Vec<usize>| {
            let filters = cpus.iter().map(|cpu| Arc::clone(&filters[*cpu])).collect();
            CachePadded::new(Mutex::new(SimulatedCore::new(&setup, filters)))
        };
        let cpu = |(who, filter): (_, &Arc<_>)| {
            CachePadded::new(SimulatedCpu::new(who, Arc::clone(filter), counters))
        };
        Ok(Self {
            line_shift: setup.line.trailing_zeros(),
            ledger: AtomicUsize::new(CountLedger::VOID.0),
            cpus: layout.cpus.into_iter().zip(&filters).map(cpu).collect(),
            cores: layout.cores.iter().map(core).collect(),
            domains: layout.domains,
            llc: Llc::new(&setup),
            counters,
            witnesses: Mutex::new(Witnesses::new(&setup)),
            ranges: OnceLock::new(),
            tags: Tags::new(&ram),
            regions: Mutex::new(Regions::new()),
            clocks: (0..=CountLedger::VOID.0).map(|_| Clock::new()).collect(),
            ram,
            setup,
        })
    }

    /// A cpu loads or stores `bytes` at a virtual `address`. Must be called by one thread at a time for
    /// each cpu; cpus that are not in the set-up are ignored.
    ///
    /// `block_address` translates the address: it is called at most once, and returns None for an address that is not
    /// RAM, which is not counted. An access that continues in another page than it starts in counts
    /// with all its bytes, but only the lines of its first page are looked up.
    #[inline]
    pub fn access(
        &self,
        cpu: usize,
        address: u64,
        bytes: u32,
        is_store: bool,
        block_address: impl FnOnce() -> Option<u64>,
    ) {
        let Some(cpu) = self.cpus.get(cpu) else { return };
        let ends = (address & (self.setup.line - 1)) + u64::from(bytes);
        let just_used = cpu.filter.get(address >> self.line_shift, is_store);
        match just_used {
            Some(cell) if ends <= self.setup.line => {
                self.count(cpu, self.ledger(), cell, is_store, bytes)
            }
            _ => self.translate(cpu, MemoryAccess { address, bytes, is_store }, block_address),
        }
    }

    /// Separate from [`Self::access`], so that its inlined fast path needs fewer registers.
    #[inline(never)]
    fn translate(
        &self,
        cpu: &SimulatedCpu,
        access: MemoryAccess,
        block: impl FnOnce() -> Option<u64>,
    ) {
        self.look_up(cpu, access, block());
    }

    /// A cpu has executed instructions of user space.
    #[inline]
    pub fn instructions(&self, cpu: usize, count: u64) {
        if let Some(cpu) = self.cpus.get(cpu) {
            cpu.blocks.get(self.ledger()).single(Single::Instructions, count);
        }
    }

    /// A cpu has executed a marker.
    ///
    /// # Errors
    ///
    /// At [`Marker::Ready`], if the witnesses have not located each node's memory. Nothing is
    /// ever counted then.
    pub fn marker(&self, cpu: usize, marker: Marker) -> Result<(), CalibrationError> {
        let Some(cpu) = self.cpus.get(cpu) else { return Ok(()) };
        match marker {
            Marker::Open(region) => self.change(|regions| regions.open(region)),
            Marker::Close(region) => self.change(|regions| regions.close(region)),
            Marker::Tag(tag) if usize::from(tag) < TAGS => cpu.mark(Mark::Tag(tag)),
            Marker::Tag(_) => {}
            Marker::Say(nibble) => cpu.say(nibble),
            Marker::Witness(node) => cpu.mark(Mark::Witness { node, physical: cpu.said() }),
            Marker::Ready => return self.ready(),
        }
        Ok(())
    }

    /// Whether accesses that no marker announces matter now. While they do not, they need not be reported.
    pub fn listens(&self) -> bool {
        self.setup.counting != Counting::Within || self.ledger() != CountLedger::VOID
    }

    /// The counts so far.
    pub fn report(&self) -> Report {
        let tagged = self.tags.count(&self.ram, self.counters.nodes);
        let all: Vec<_> = CountLedger::counted().collect();
        let regions = self.regions.lock();
        let region = |number: &u8| {
            let ledger = CountLedger(usize::from(*number));
            Region {
                number: *number,
                opened: regions.times(*number),
                traffic: self.summary(&[ledger]).traffic(&tagged),
                series: self.clocks[ledger.0].finish(|| self.sum(&[ledger])),
            }
        };
        let witnesses = self.witnesses.lock();
        Report {
            version: REPORT_VERSION,
            setup: self.setup.clone(),
            calibration: CalibrationReport {
                witnesses: witnesses.heard,
                failure: match self.ranges.get() {
                    Some(_) => None,
                    None => Some(witnesses.failure.clone().unwrap_or("it has not ended".into())),
                },
            },
            total: self.summary(&all).traffic(&tagged),
            regions: regions.known.iter().map(region).collect(),
            series: self.clocks[CountLedger::VOID.0].finish(|| self.sum(&all)),
        }
    }

    #[inline]
    fn ledger(&self) -> CountLedger {
        CountLedger(self.ledger.load(Relaxed))
    }

    #[inline]
    fn count(
        &self,
        cpu: &SimulatedCpu,
        ledger: CountLedger,
        cell: CounterCell,
        is_store: bool,
        bytes: u32,
    ) {
        cpu.blocks.get(ledger).access(cell, is_store, bytes);
        if cpu.tick() {
            self.advance(ledger);
        }
    }

    /// A cpu has counted some accesses since its last call.
    #[cold]
    fn advance(&self, ledger: CountLedger) {
        if ledger == CountLedger::VOID {
            return;
        }
        let all = &self.clocks[CountLedger::VOID.0];
        all.advance(TICK.into(), || self.sum(&CountLedger::counted().collect::<Vec<_>>()));
        if ledger != CountLedger::OUTSIDE {
            self.clocks[ledger.0].advance(TICK.into(), || self.sum(&[ledger]));
        }
    }

    fn summary(&self, ledgers: &[CountLedger]) -> Summary {
        let mut summary = Summary::new(self.counters, self.cpus.len());
        for (number, cpu) in self.cpus.iter().enumerate() {
            for block in ledgers.iter().filter_map(|ledger| cpu.blocks.used(*ledger)) {
                summary.add(number, cpu.who.node, block);
            }
        }
        summary
    }

    fn sum(&self, ledgers: &[CountLedger]) -> Sum {
        let region = match ledgers {
            [one] => Some(*one),
            _ => Some(self.ledger()).filter(|ledger| ledger.0 < CountLedger::OUTSIDE.0),
        };
        self.summary(ledgers).slice(region.and_then(|ledger| u8::try_from(ledger.0).ok()))
    }

    fn change(&self, change: impl FnOnce(&mut Regions)) {
        let mut regions = self.regions.lock();
        change(&mut regions);
        self.choose_ledger(&regions);
    }

    fn choose_ledger(&self, regions: &Regions) {
        let ledger = match (regions.current(), self.setup.counting) {
            _ if self.ranges.get().is_none() => CountLedger::VOID,
            (Some(region), _) => CountLedger(region.into()),
            (None, Counting::User) => CountLedger::OUTSIDE,
            (None, Counting::Region | Counting::Within) => CountLedger::VOID,
        };
        let before = self.ledger.swap(ledger.0, Relaxed);
        if self.setup.counting == Counting::Within && before == CountLedger::VOID.0 {
            // Pages may have moved, and cpus run other processes, since the filters learned where lines are.
            self.cores.iter().for_each(|core| core.lock().forget_all());
        }
    }

    fn ready(&self) -> Result<(), CalibrationError> {
        let mut witnesses = self.witnesses.lock();
        if self.ranges.get().is_none() {
            let ranges = witnesses.ranges(&self.setup, &self.ram)?;
            self.ranges.get_or_init(|| ranges);
        }
        drop(witnesses);
        self.choose_ledger(&self.regions.lock());
        Ok(())
    }
}
