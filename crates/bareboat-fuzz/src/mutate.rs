//! Makes inputs out of seeds: the same number gives the same inputs, on every machine.

/// Bytes that readers treat in a special way.
const TOKENS: &[&[u8]] = &[
    b"0",
    b"-1",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"18446744073709551616",
    b"1e308",
    b"1e-400",
    b"\0",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xf0\x9f\x98\x80",
    b"{}",
    b"[]",
    b"[[",
    b"{{",
    b"null",
    b"true",
    b":",
    b",",
    b"=",
    b"!=",
    b"&a ",
    b"*a",
    b"<<: ",
    b"|\n",
    b"--- ",
    b"%",
    b"%00",
    b"%2F",
    b"..",
    b"/",
    b"?",
    b"&",
    b"\r\n",
    b"\t",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    b"\x08",
    b"\x0a\x00",
    b"~1",
    b"~0",
    b"-",
];

/// Longer inputs find little that shorter ones do not.
const MOST_BYTES: usize = 8192;
/// How many accepted inputs are kept beside the seeds.
const MOST_KEPT: usize = 1000;

/// A source of inputs.
#[derive(Debug)]
pub struct Mutator {
    state: u64,
    seeds: usize,
    pool: Vec<Vec<u8>>,
}

impl Mutator {
    /// Creates a mutator. `number` seeds its random generator; `seeds` are the first inputs, at least one.
    pub fn new(number: u64, seeds: Vec<Vec<u8>>) -> Mutator {
        Mutator {
            state: number ^ 0x9e37_79b9_7f4a_7c15,
            seeds: seeds.len(),
            pool: seeds,
        }
    }

    /// The next input.
    pub fn input(&mut self) -> Vec<u8> {
        let start = self.below(self.pool.len());
        let mut input = self.pool[start].clone();
        for _ in 0..=self.below(6) {
            self.change(&mut input);
        }
        input.truncate(MOST_BYTES);
        input
    }

    /// Keeps an input to be changed further.
    pub fn keep(&mut self, input: Vec<u8>) {
        if self.pool.len() < self.seeds + MOST_KEPT {
            self.pool.push(input);
        } else {
            let at = self.seeds + self.below(MOST_KEPT);
            self.pool[at] = input;
        }
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let end = (at + 1 + self.below(16)).min(input.len());
        match self.below(8) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.below(256) as u8,
            2 if at < end => {
                input.drain(at..end);
            }
            3 if at < end => {
                let copied = input[at..end].to_vec();
                let times = 1 + self.below(4);
                for _ in 0..times {
                    let to = self.below(input.len() + 1);
                    input.splice(to..to, copied.iter().copied());
                }
            }
            4 => {
                // A part of another input.
                let other = self.below(self.pool.len());
                let other = self.pool[other].clone();
                let from = self.below(other.len() + 1);
                let to = (from + 1 + self.below(64)).min(other.len());
                input.splice(at..at, other[from.min(to)..to].iter().copied());
            }
            5 if at < end => {
                let token = TOKENS[self.below(TOKENS.len())];
                input.splice(at..end, token.iter().copied());
            }
            6 => {
                // Deep nesting and long runs, now and then.
                let token = TOKENS[self.below(TOKENS.len())];
                let times = if self.below(16) == 0 { 1000 } else { 4 };
                let run = token.repeat(1 + self.below(times));
                input.splice(at..at, run);
            }
            _ => {
                let token = TOKENS[self.below(TOKENS.len())];
                input.splice(at..at, token.iter().copied());
            }
        }
    }

    /// A number below `limit`, which is 0 for 0.
    fn below(&mut self, limit: usize) -> usize {
        // splitmix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        (bits % (limit.max(1) as u64)) as usize
    }
}
