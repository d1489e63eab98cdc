//! Inputs that are kept, and mutations of them.
#![allow(dead_code)]

use std::path::Path;

/// All files of a folder of the corpus, in the order of their names.
pub fn seeds(folder: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(folder);
    let mut paths: Vec<_> = dir.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "the corpus {folder} is empty");
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Pieces that parsers are known to stumble over.
const PIECES: [&[u8]; 24] = [
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\\",
    b"\n",
    b"\r\n",
    b"\0",
    b",",
    b":",
    b"=",
    b"nan",
    b"-inf",
    b"1e999",
    b"-1e400",
    b"5e-324",
    b"18446744073709551616",
    b"\xff\xfe",
    "\u{202e}".as_bytes(),
    b"#",
    b"'''",
    b"null",
    b"-",
];

/// A source of inputs, the same for the same seed.
pub struct Mutator {
    state: u64,
    count: u64,
}

impl Mutator {
    pub fn new(stream: u64) -> Self {
        let from = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let seed = from("BATCHQUAD_FUZZ_SEED").unwrap_or(0);
        Self {
            state: seed.wrapping_mul(1_000_003) ^ (stream << 40) ^ 0x9e37_79b9,
            count: from("BATCHQUAD_FUZZ").unwrap_or(3000),
        }
    }

    /// For inputs that take longer each.
    pub fn fewer(&mut self, times: u64) -> &mut Self {
        self.count = (self.count / times).max(1);
        self
    }

    /// Hands all seeds and then mutations of them to `attack`; says how many there were.
    pub fn run(&mut self, seeds: &[Vec<u8>], mut attack: impl FnMut(&[u8])) -> u64 {
        seeds.iter().for_each(|seed| attack(seed));
        for _ in 0..self.count {
            let mut input = seeds[self.below(seeds.len())].clone();
            for _ in 0..1 + self.below(4) {
                self.mutate(&mut input, seeds);
            }
            attack(&input);
        }
        seeds.len() as u64 + self.count
    }

    fn mutate(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        let end = (at + 1 + self.below(12)).min(input.len());
        match self.below(8) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.below(256) as u8,
            2 => drop(input.drain(at..end.max(at))),
            3 => drop(input.splice(at..at, PIECES[self.below(PIECES.len())].iter().copied())),
            4 => drop(input.splice(at..end.max(at), PIECES[self.below(PIECES.len())].iter().copied())),
            5 => input.truncate(at),
            6 => {
                let other = &seeds[self.below(seeds.len())];
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => {
                let piece = input[at..end.max(at)].to_vec();
                for _ in 0..self.below(40) {
                    input.splice(at..at, piece.iter().copied());
                }
            }
        }
        input.truncate(200_000);
    }

    fn below(&mut self, n: usize) -> usize {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}
