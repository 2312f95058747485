//! An access that the filter cannot answer: translated, looked up in the core's own caches, and then
//! in those of the domains.
//!
//! Locks are taken in the order stripe, core, and one core at a time. Between the look into the core's
//! caches and taking the stripe's lock, another cpu may change both; the domains' caches decide, and what they
//! grant is filled in before the stripe is unlocked.

use super::{MemoryAccess, Simulation};
use crate::PAGE;
use crate::coherence::{Coherence, LineRequest, LineSource};
use crate::core::{Level, SimulatedCore, Use, Want};
use crate::counters::{CounterBlock, CounterCell, Single};
use crate::cpu::{Mark, SimulatedCpu};
use crate::llc::LineState;
use crate::ram::{LineNumber, RamAddress};

impl Simulation {
    /// An access that the filter did not answer.
    #[inline(never)]
    pub(super) fn look_up(&self, cpu: &SimulatedCpu, access: MemoryAccess, block: Option<u64>) {
        let mark = cpu.take_mark();
        let Some(ranges) = self.ranges.get() else {
            if let Some(Mark::Witness { node, physical }) = mark {
                self.witnesses.lock().hear(&self.setup, &self.ram, node, physical, block);
            }
            return;
        };
        let Some(place) = block.and_then(|block| ranges.place(block)) else { return };
        if let Some(Mark::Tag(tag)) = mark {
            self.tag(place, tag);
        }
        let page = place.linear / PAGE * PAGE;
        let linear = page + access.address % PAGE;
        let place = RamAddress { linear, ..place };
        let cell = self.counters.cell(place.node, self.tags.get(linear));
        let ledger = self.ledger();
        self.count(cpu, ledger, cell, access.is_store, access.bytes);
        self.look_up_lines(cpu, access, place, cell, cpu.blocks.get(ledger));
    }

    fn look_up_lines(
        &self,
        cpu: &SimulatedCpu,
        access: MemoryAccess,
        place: RamAddress,
        cell: CounterCell,
        block: &CounterBlock,
    ) {
        let last = place.linear + u64::from(access.bytes.max(1)) - 1;
        let last = last.min(place.linear | (PAGE - 1));
        let lines = place.linear >> self.line_shift..=last >> self.line_shift;
        for (i, line) in (0..).zip(lines) {
            let what = Use {
                thread: cpu.who.thread,
                page: access.address / PAGE,
                virtual_line: (access.address >> self.line_shift) + i,
                line: LineNumber(line),
                is_store: access.is_store,
            };
            if i > 0 {
                block.single(Single::FurtherLines, 1);
            }
            self.look_up_line(cpu, what, place, cell, block);
        }
    }

    fn look_up_line(
        &self,
        cpu: &SimulatedCpu,
        what: Use,
        place: RamAddress,
        cell: CounterCell,
        block: &CounterBlock,
    ) {
        let Err(want) = self.private(cpu, what, place, block) else { return };
        let cut = self.llc.cut(what.line);
        let mut stripe = self.llc.lock(cut);
        let request = LineRequest {
            from: cpu.who,
            line: what.line,
            cut,
            home: place.node,
            cell,
            is_store: what.is_store,
        };
        let found = self.coherence(block).request(&mut stripe, request);
        let mut core = self.cores[cpu.who.core].lock();
        if let LineSource::Elsewhere { lost: Some(line) } = found {
            core.invalidate(line);
        }
        let before = core.fill(what, want);
        self.remember(&mut core, what, place);
        drop(core);
        drop(stripe);
        count_found(found, before.filter(|_| what.is_store), block);
    }

    /// Looks into the core's own caches.
    #[inline]
    fn private(
        &self,
        cpu: &SimulatedCpu,
        what: Use,
        place: RamAddress,
        block: &CounterBlock,
    ) -> Result<(), Want> {
        let mut core = self.cores[cpu.who.core].lock();
        if !core.translate(what.page) {
            block.single(Single::DtlbMisses, 1);
        }
        let level = core.hit(what)?;
        self.remember(&mut core, what, place);
        drop(core);
        count_private(level, block);
        Ok(())
    }

    /// Puts a line in the cpu's filter. The tag is read under the core's lock, see [`Self::tag`].
    fn remember(&self, core: &mut SimulatedCore, what: Use, place: RamAddress) {
        let cell = self.counters.cell(place.node, self.tags.get(place.linear));
        core.remember(what, cell);
    }

    /// Gives a page a tag. Filters that know the page under another one are cleared; those filled
    /// afterwards, under the same locks, see the new tag.
    fn tag(&self, place: RamAddress, tag: u8) {
        if self.tags.set(place.linear, tag) != tag {
            for core in &self.cores {
                core.lock().forget_all();
            }
        }
    }

    fn coherence<'a>(&'a self, block: &'a CounterBlock) -> Coherence<'a> {
        Coherence {
            setup: &self.setup,
            ram: &self.ram,
            llc: &self.llc,
            cores: &self.cores,
            domains: &self.domains,
            block,
        }
    }
}

/// Counts a line that came from the last-level cache or further. A store to a line that the core had,
/// and no one else in the machine, is a hit in the private cache.
fn count_found(found: LineSource, before: Option<Level>, block: &CounterBlock) {
    let LineSource::Here { state, alone } = found else { return };
    let what = match (state, before) {
        (LineState::Modified | LineState::Exclusive, Some(level)) if alone => {
            return count_private(level, block);
        }
        (LineState::Modified, _) => Single::Modified,
        (LineState::Exclusive, _) => Single::Exclusive,
        (LineState::Shared, _) => Single::Shared,
        (LineState::Forward, _) => Single::Forward,
    };
    block.single(what, 1);
}

/// Counts a hit in a private cache; in the first level it is what remains of all accesses.
fn count_private(level: Level, block: &CounterBlock) {
    if level == Level::Second {
        block.single(Single::PrivateL2, 1);
    }
}
