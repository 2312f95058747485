//! Tags of pages of RAM.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::PAGE;
use crate::counters::TAGS;
use crate::ram::Ram;

/// Pages of a piece: 256 MiB.
const PIECE: u64 = 1 << 16;

/// The tag of each page, in pieces that are made when the first of their pages gets one.
pub(crate) struct Tags {
    pieces: Vec<OnceLock<Box<[AtomicU8]>>>,
}

impl Tags {
    pub(crate) fn new(ram: &Ram) -> Self {
        let pieces = ram.size().div_ceil(PAGE * PIECE);
        Self { pieces: (0..pieces).map(|_| OnceLock::new()).collect() }
    }

    /// Tag of the page of a linear address; 0 for none.
    pub(crate) fn get(&self, linear: u64) -> u8 {
        let (piece, page) = split(linear / PAGE);
        let piece = self.pieces.get(piece).and_then(OnceLock::get);
        piece.map_or(0, |piece| piece[page].load(Relaxed))
    }

    /// Gives the page of a linear address a tag; the one it had.
    pub(crate) fn set(&self, linear: u64, tag: u8) -> u8 {
        let (piece, page) = split(linear / PAGE);
        let empty = || (0..PIECE).map(|_| AtomicU8::new(0)).collect();
        self.pieces[piece].get_or_init(empty)[page].swap(tag, Relaxed)
    }

    /// Pages of each tag on each node.
    pub(crate) fn count(&self, ram: &Ram, nodes: usize) -> Vec<Vec<u64>> {
        let mut counts = vec![vec![0; nodes]; TAGS];
        let pieces = self.pieces.iter().zip(0..).filter_map(|(piece, i)| Some((i, piece.get()?)));
        for (i, piece) in pieces {
            let tagged = (0..).zip(piece).map(|(page, tag)| (page, tag.load(Relaxed)));
            for (page, tag) in tagged.filter(|(_, tag)| *tag != 0) {
                let node = ram.node((i * PIECE + page) * PAGE);
                counts[usize::from(tag)][node.0] += 1;
            }
        }
        counts
    }
}

fn split(page: u64) -> (usize, usize) {
    ((page / PIECE) as usize, (page % PIECE) as usize)
}
