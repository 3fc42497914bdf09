//! What a request of a warp takes of memory: sectors of device memory, and wavefronts of shared memory.
//!
//! *Sectors* are the distinct 32-byte sectors that it touches. *Wavefronts* are, for each group of 32, 16 or 8 lanes (accesses of up
//! to 4, 8 and 16 bytes a lane), the most distinct 4-byte words wanted in any of the 32 banks, summed over the groups; a
//! broadcast is one word. Where all lanes whose numbers differ in the lowest bit alone read the same 8 or 16 bytes, or all whose
//! numbers differ in the second lowest bit alone, groups are twice as large: an H200 takes 1.3 and 2.15 cycles for such loads
//! and 2.0 and 4.0 for others (bench/limits/pairs.cu, 2026-11-23).

/// Space to work in, kept from request to request.
#[derive(Clone, Debug)]
pub struct Tally {
    words: Box<[[i64; 32]; 32]>,
    counts: [u8; 32],
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { words: Box::new([[0; 32]; 32]), counts: [0; 32] }
    }
}

impl Tally {
    /// Distinct 32-byte sectors of accesses of `bytes` bytes at the given addresses.
    pub fn sectors(addresses: &[i64], bytes: i64) -> u64 {
        Tally::pieces(addresses, bytes, 32)
    }

    /// Distinct 128-byte lines of such accesses: the first-level cache looks up one at a time.
    pub fn lines(addresses: &[i64], bytes: i64) -> u64 {
        Tally::pieces(addresses, bytes, 128)
    }

    /// Distinct pieces of memory of so many bytes that such accesses touch.
    fn pieces(addresses: &[i64], bytes: i64, size: i64) -> u64 {
        let mut distinct = 0;
        let mut last = i64::MIN;
        let mut sorted = true;
        for address in addresses {
            let (first, end) = (address.div_euclid(size), (address + bytes - 1).div_euclid(size));
            if first < last {
                sorted = false;
                break;
            }
            distinct += (end - first + i64::from(first != last)).max(0) as u64;
            last = end.max(last);
        }
        if sorted {
            return distinct;
        }
        let mut pieces: Vec<i64> =
            addresses.iter().flat_map(|a| a.div_euclid(size)..=(a + bytes - 1).div_euclid(size)).collect();
        pieces.sort_unstable();
        pieces.dedup();
        pieces.len() as u64
    }

    /// The least sectors that would do for as many different bytes as such accesses touch; and these bytes.
    pub fn least_sectors(addresses: &[i64], bytes: i64) -> (u64, u64) {
        // Accesses are aligned to 2 bytes at least, or to their size where that is 1.
        let unit = if bytes % 2 == 0 { 2 } else { 1 };
        let wanted = Tally::pieces(addresses, bytes, unit) * unit as u64;
        (wanted.div_ceil(32), wanted)
    }

    /// Wavefronts that such accesses to shared memory would take without conflicts: one for each group of lanes that is served
    /// at a time; and the different bytes that they touch.
    pub fn least_wavefronts(addresses: &[(u8, i64)], bytes: i64) -> (u64, u64) {
        let group = lanes_at_a_time(addresses, bytes);
        let mut groups: Vec<u8> = addresses.iter().map(|(lane, _)| lane / group).collect();
        groups.dedup();
        let all: Vec<i64> = addresses.iter().map(|(_, address)| *address).collect();
        let parts = (bytes + 15) / 16;
        (groups.len() as u64 * parts as u64, Tally::least_sectors(&all, bytes).1)
    }

    /// Wavefronts of accesses of `bytes` bytes; `addresses` holds a byte address for each active lane.
    pub fn wavefronts(&mut self, addresses: &[(u8, i64)], bytes: i64) -> u64 {
        let group = lanes_at_a_time(addresses, bytes);
        let mut sum = 0;
        // Wider than 16 bytes: as many accesses of 16.
        for part in 0..(bytes + 15) / 16 {
            let bytes = (bytes - 16 * part).min(16);
            let mut at = 0;
            while at < addresses.len() {
                let number = addresses[at].0 / group;
                let mut most = 0;
                self.counts = [0; 32];
                while let Some((lane, address)) = addresses.get(at)
                    && lane / group == number
                {
                    let first = (address + 16 * part).div_euclid(4);
                    let last = (address + 16 * part + bytes - 1).div_euclid(4);
                    for word in first..=last {
                        let bank = word.rem_euclid(32) as usize;
                        let count = self.counts[bank] as usize;
                        let seen = &mut self.words[bank];
                        if !seen[..count].contains(&word) && count < 32 {
                            seen[count] = word;
                            self.counts[bank] += 1;
                            most = most.max(self.counts[bank]);
                        }
                    }
                    at += 1;
                }
                sum += u64::from(most);
            }
        }
        sum
    }
}

/// How many lanes shared memory serves at a time, of accesses of `bytes` bytes.
pub fn lanes_at_a_time(addresses: &[(u8, i64)], bytes: i64) -> u8 {
    let at_once = match bytes {
        ..=4 => 32,
        5..=8 => 16,
        _ => 8,
    };
    let pairs = at_once < 32 && (1..=2).any(|bit| in_pairs(addresses, bit));
    if pairs { 2 * at_once } else { at_once }
}

/// Whether all active lanes whose numbers differ in this bit alone want the same.
fn in_pairs(addresses: &[(u8, i64)], bit: u8) -> bool {
    addresses.iter().enumerate().all(|(at, (lane, address))| {
        // Lanes come in order, so the other one of a pair is at most as many places behind as its number is larger.
        let mut behind = addresses[at..].iter().take(1 + usize::from(bit));
        behind.all(|(other, wanted)| lane ^ other != bit || address == wanted)
    })
}

#[cfg(test)]
mod tests {
    use super::Tally;

    fn lanes(f: impl Fn(i64) -> i64) -> Vec<(u8, i64)> {
        (0..32).map(|l| (l as u8, f(l))).collect()
    }

    #[test]
    fn wavefronts_follow_the_banks() {
        let mut tally = Tally::default();
        assert_eq!(tally.wavefronts(&lanes(|l| 4 * l), 4), 1);
        assert_eq!(tally.wavefronts(&lanes(|_| 64), 4), 1);
        assert_eq!(tally.wavefronts(&lanes(|l| 8 * l), 4), 2);
        assert_eq!(tally.wavefronts(&lanes(|l| 128 * l), 4), 32);
        assert_eq!(tally.wavefronts(&lanes(|l| 8 * l), 8), 2);
        assert_eq!(tally.wavefronts(&lanes(|l| 16 * l), 16), 4);
        assert_eq!(tally.wavefronts(&lanes(|l| 32 * l), 16), 8);
        assert_eq!(tally.wavefronts(&lanes(|l| 2 * l), 2), 1);
    }

    /// The patterns of bench/limits/pairs.cu, and what an H200 takes for them: 4.01 or 2.15 cycles for 16 bytes a lane,
    /// 2.0 or 1.3 for 8.
    #[test]
    fn lanes_that_read_the_same_in_pairs_need_half_the_wavefronts() {
        let mut tally = Tally::default();
        let mut of = |place: fn(i64) -> i64| {
            [8, 16].map(|bytes| tally.wavefronts(&lanes(|l| bytes * place(l)), bytes))
        };
        let (all, half) = ([2, 4], [1, 2]);
        assert_eq!(of(|l| l), all);
        assert_eq!(of(|_| 0), half);
        assert_eq!(of(|l| l / 2), half);
        assert_eq!(of(|l| l / 4 * 2 + l % 2), half, "lanes l and l^2");
        assert_eq!(of(|l| l / 8 * 4 + l % 4), all, "lanes l and l^4");
        assert_eq!(of(|l| l % 16), all);
        assert_eq!((of(|l| l / 4), of(|l| l % 4)), (half, all), "rows of four lanes");
        assert_eq!(
            (of(|l| l / 8 * 2 + l % 2), of(|l| l / 4 % 2 * 2 + l / 2 % 2)),
            (half, half),
            "interleaved"
        );
        assert_eq!((of(|l| l / 3), of(|l| l % 3)), (all, all), "rows of three lanes");
        assert_eq!((of(|l| l / 6 * 2 + l % 2), of(|l| l / 2 % 3)), (all, half), "interleaved");
        // Who is idle keeps nobody from being a pair; one lane that reads something else does.
        let some: Vec<(u8, i64)> = lanes(|l| 16 * (l / 2)).into_iter().filter(|(l, _)| l % 3 != 0).collect();
        assert_eq!(tally.wavefronts(&some, 16), 2);
        assert_eq!(tally.wavefronts(&lanes(|l| if l == 31 { 1024 } else { 16 * (l / 2) }), 16), 4);
    }

    #[test]
    fn sectors_are_distinct() {
        let addresses = |f: fn(i64) -> i64| (0..32).map(f).collect::<Vec<_>>();
        assert_eq!(Tally::sectors(&addresses(|l| 4 * l), 4), 4);
        assert_eq!(Tally::sectors(&addresses(|l| 4 * l + 4), 4), 5);
        assert_eq!(Tally::sectors(&addresses(|l| 400 * (l % 2)), 4), 2);
        assert_eq!(Tally::sectors(&addresses(|_| 28), 8), 2);
        assert_eq!(Tally::sectors(&addresses(|l| 16 * l), 16), 16);
        assert_eq!(Tally::sectors(&addresses(|l| 128 * (31 - l)), 4), 32);
        let lines = |f: fn(i64) -> i64, bytes| Tally::lines(&addresses(f), bytes);
        assert_eq!((lines(|l| 4 * l, 4), lines(|l| 4 * l + 4, 4), lines(|l| 16 * l, 16)), (1, 2, 4));
        assert_eq!((lines(|l| 128 * (31 - l), 4), lines(|_| 28, 4)), (32, 1));
    }
}
