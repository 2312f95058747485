//! The instruction: `0f 1f 80` and a displacement of four bytes, number, kind, `01`, `a7`.

/// Length of a marker in bytes.
pub const LEN: usize = 7;

/// The two constant bytes of every marker's displacement.
const SIGNATURE: [u8; 2] = [0x01, 0xa7];

/// A marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A thread enters a region; the region is open while more have entered than left it.
    Open(u8),
    /// A thread leaves a region.
    Close(u8),
    /// Tags the page that the next instruction loads from.
    Tag(u8),
    /// Four bits of a number for the counter, the most significant first; only the last sixteen groups count.
    Say(u8),
    /// The next instruction's load is from a page of the node of this number, whose guest-physical
    /// address has just been said.
    Witness(u8),
    /// The witnesses of all nodes are complete.
    Ready,
}

impl Marker {
    /// The marker's number and its kind.
    const fn parts(self) -> (u8, u8) {
        match self {
            Self::Open(region) => (region, 1),
            Self::Close(region) => (region, 2),
            Self::Tag(tag) => (tag, 3),
            Self::Say(nibble) => (nibble, 4),
            Self::Witness(node) => (node, 5),
            Self::Ready => (0, 6),
        }
    }

    /// The bytes of the instruction.
    pub const fn encode(self) -> [u8; LEN] {
        let (number, kind) = self.parts();
        [0x0f, 0x1f, 0x80, number, kind, SIGNATURE[0], SIGNATURE[1]]
    }

    /// Decodes a marker. Returns None for any other instruction.
    pub fn decode(instruction: &[u8]) -> Option<Self> {
        let &[0x0f, 0x1f, 0x80, number, kind, first, second] = instruction else { return None };
        if [first, second] != SIGNATURE {
            return None;
        }
        match kind {
            1 if number < crate::REGIONS => Some(Self::Open(number)),
            2 if number < crate::REGIONS => Some(Self::Close(number)),
            3 if number < crate::TAGS => Some(Self::Tag(number)),
            4 if number < 16 => Some(Self::Say(number)),
            5 if number < crate::NODES => Some(Self::Witness(number)),
            6 if number == 0 => Some(Self::Ready),
            _ => None,
        }
    }
}
