use std::collections::HashSet;

use super::instruction::Instruction;
use super::registers::RegisterFile;
use super::segment::{Constraints, segments, targets};
use super::{function, hint, register_cycles};

/// `FFMA d, a, b, c` that starts a cycle before the next instruction.
fn multiply_add(d: u8, a: u8, b: u8, c: u8) -> Instruction {
    let registers = u128::from(d) << 16 | u128::from(a) << 24 | u128::from(b) << 32 | u128::from(c) << 64;
    // No scoreboards, and a cycle's stall.
    Instruction(0x7223 | registers | 0b111_111 << 110 | 1 << 105)
}

/// An integer sum (IADD3) with that many cycles of stall, which writes a register.
fn other(register: u8, stall: u128) -> Instruction {
    let fields = u128::from(register) << 16 | 0xff << 24 | 0xff << 32 | 0xff << 64;
    Instruction(0x7210 | fields | 0b111_111 << 110 | stall << 105)
}

/// Products of rows and columns, one column after the other. Its sums are in the bank in which its factor is not.
fn products() -> Vec<Instruction> {
    let mut code = vec![other(200, 15), other(204, 15)];
    for column in 0..4u8 {
        code.extend((0..4u8).map(|row| {
            let sum = 100 + 8 * column + 2 * row + (column + 1) % 2;
            multiply_add(sum, 28 + column, 60 + row, sum)
        }));
    }
    code.extend([other(208, 15), other(212, 15)]);
    code
}

#[test]
fn multiply_adds_change_places_so_that_they_wait_less_and_do_the_same() {
    let mut before = products();
    // The first waits for a scoreboard, and one has to be waited for longer. What stands before the first keeps something for
    // it, and the last for what stands behind.
    before[2].0 |= 1 << 116;
    before[9].0 ^= 0b11 << 105;
    before[1] = before[1].keeping([true, false]);
    before[17] = before[17].keeping([true, true]);
    let mut after = before.clone();
    let reordered = function(&mut after).unwrap();
    assert_eq!((reordered.functions, reordered.multiply_adds), (1, 16));
    assert_eq!(reordered.cycles, [&before, &after].map(|code| register_cycles(code, &HashSet::new())));
    // Three registers each from two banks, and nothing is kept; afterwards a cycle each is enough.
    assert!(reordered.cycles[0] >= 22 && reordered.cycles[1] <= 17, "{:?}", reordered.cycles);
    let meaning = |code: &[Instruction]| {
        let mut all: Vec<_> = code
            .iter()
            .map(|i| {
                let [a, b, c] = i.sources();
                (i.is_multiply_add(), i.destination(), a.min(b), a.max(b), c)
            })
            .collect();
        all.sort_unstable();
        all
    };
    assert_eq!(meaning(&before), meaning(&after));
    assert_eq!(results(&before, false), results(&after, true));
    assert_eq!([before[0], before[1].keeping([false; 2])], after[..2]);
    let waiting = |code: &[Instruction]| code.iter().map(|i| (i.waits(), i.stall())).collect::<Vec<_>>();
    assert_eq!(waiting(&before), waiting(&after), "waits belong to places");
    assert!(after[2..18].iter().any(|i| i.kept() != [false; 2]));
    assert_eq!(after[17].kept(), [false; 2], "nothing is known of who reads it behind the last");
    assert_eq!(before[18..], after[18..]);
    let mut again = before.clone();
    function(&mut again).unwrap();
    assert_eq!(again, after, "the same code gets the same order");
}

/// What is in all registers at the end of code in a line: each result is a number drawn from what its instruction reads. With the
/// operand cache, a factor that is kept there is what it was when it was read, whatever its register holds by now.
fn results(code: &[Instruction], cached: bool) -> Vec<u64> {
    let mut registers: Vec<u64> = (0..256).collect();
    let mut kept = [[None; 2]; 2];
    for instruction in code {
        let sources = instruction.sources();
        let mut read = sources.map(|register| registers[usize::from(register)]);
        for place in 0..2 {
            let kept: &mut Option<(u8, u64)> = &mut kept[place][usize::from(sources[place] % 2)];
            if let Some((register, value)) = *kept
                && register == sources[place]
                && cached
            {
                read[place] = value;
            }
            *kept = instruction.kept()[place].then_some((sources[place], read[place]));
        }
        let [a, b, c] = read;
        let product = a.wrapping_mul(b).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        registers[usize::from(instruction.destination())] =
            product.wrapping_add(c.rotate_left(7)) ^ product >> 31;
    }
    registers
}

#[test]
fn what_uses_a_result_stays_behind_it_and_far_enough() {
    // The first and the fourth add to one sum, which the fifth reads as a factor; the last overwrites a factor of the first.
    let code = [
        multiply_add(10, 20, 30, 10),
        multiply_add(11, 21, 31, 11),
        multiply_add(12, 22, 32, 12),
        multiply_add(10, 23, 33, 10),
        multiply_add(13, 10, 34, 13),
        multiply_add(20, 24, 35, 20),
    ];
    let constraints = Constraints::of(&code, &(0..6), &targets(&code).unwrap());
    assert_eq!(constraints.before[3], [(0, 3)], "no closer than it was, or than the latency");
    assert_eq!(constraints.before[4], [(0, 4), (3, 1)]);
    assert_eq!(constraints.before[5], [(0, 0)], "what is overwritten has been read");
    assert!(constraints.before[1].is_empty());
}

#[test]
fn near_what_is_not_known_nothing_moves_towards_it() {
    // A loop of multiply-adds alone: what comes before the first and after the last is the other end, or something else.
    let mut code: Vec<Instruction> = (0..40).map(|n| multiply_add(100 + n, 20, 30, 100 + n)).collect();
    let to_first = (-41i64 * 4) as u64;
    let branch =
        0x947 | u128::from(to_first & 0xff) << 16 | u128::from((to_first >> 8) & ((1 << 30) - 1)) << 34;
    code.push(Instruction(branch | 0x3ffff << 64 | 5 << 105));
    let targets = targets(&code).unwrap();
    assert_eq!(targets.iter().collect::<Vec<_>>(), [&0]);
    let places = Constraints::of(&code, &segments(&code, &targets)[0], &targets).places;
    assert_eq!(places[0].start, 0);
    assert_eq!(places[10].start, 10);
    assert_eq!(places[30].start, 16);
    assert_eq!(places[39].end, 40);
    assert_eq!(places[35].end, 36);
    assert_eq!(places[3].end, 25, "sixteen cycles before the end");
}

#[test]
fn what_another_instruction_may_touch_keeps_its_distance() {
    let mut code = vec![other(3, 15), other(7, 15), other(40, 2)];
    code.extend((0..30).map(|n| multiply_add(100 + n, 20, if n == 20 { 43 } else { 30 }, 100 + n)));
    code.extend([other(104, 15), other(0, 15)]);
    let targets = targets(&code).unwrap();
    let segment = segments(&code, &targets).remove(0);
    assert_eq!(segment, 3..33);
    let places = Constraints::of(&code, &segment, &targets).places;
    assert_eq!(
        places[20].start, 14,
        "the fourth register of what begins at 40, two cycles before the segment"
    );
    assert_eq!(places[19].start, 0);
    assert_eq!((places[6].end, places[8].end), (15, 30), "104 to 107 may be overwritten behind the segment");
}

#[test]
fn segments_end_where_somebody_waits_or_may_arrive() {
    let code: Vec<Instruction> = (0..6).map(|n| multiply_add(100 + n, 20, 30, 100 + n)).collect();
    let none = targets(&code).unwrap();
    assert_eq!(segments(&code, &none), vec![0..6]);
    let waits = |at: usize| {
        let mut code = code.clone();
        code[at].0 |= 1 << 116;
        segments(&code, &none)
    };
    assert_eq!(waits(0), vec![0..6]);
    assert_eq!(waits(2), [0..2, 2..6]);
    assert_eq!(segments(&code, &[4].into()), [0..4, 4..6]);
    for unknown in [0x949, 0x23c, 0x944] {
        let mut code = code.clone();
        code.push(Instruction(unknown));
        assert_eq!(function(&mut code), None, "{unknown:x}");
    }
}

/// Which factors the first instruction keeps for those behind it.
fn kept_by_the_first(code: &[Instruction]) -> [bool; 2] {
    let mut code = code.to_vec();
    let changed = vec![true; code.len()];
    hint(&mut code, &changed, &HashSet::new());
    code[0].kept()
}

#[test]
fn the_operand_cache_keeps_what_a_later_one_reads_at_the_same_place() {
    let first = multiply_add(80, 20, 31, 80);
    // LDS.64 R6, [R16]
    let load = Instruction(0x001e2800_00000a00_00000000_10067984);
    let other_bank = multiply_add(81, 21, 40, 81);
    let again = multiply_add(82, 20, 31, 82);
    assert_eq!(kept_by_the_first(&[first, again]), [true, true]);
    assert_eq!(kept_by_the_first(&[first, other_bank, load, other_bank, again]), [true, true]);
    assert_eq!(kept_by_the_first(&[first, multiply_add(81, 22, 40, 81), again]), [false, true], "replaced");
    assert_eq!(kept_by_the_first(&[first, multiply_add(81, 31, 20, 81)]), [false, false], "at other places");
    assert_eq!(kept_by_the_first(&[first, other(9, 2), again]), [false, false], "who knows what that reads");
    assert_eq!(kept_by_the_first(&[first]), [false, false], "read by nobody");
    let at_target: HashSet<usize> = [1].into();
    let mut code = [first, again];
    hint(&mut code, &[true; 2], &at_target);
    assert_eq!(code[0].kept(), [false; 2], "who comes from elsewhere has not read it");
}

#[test]
fn a_value_that_is_overwritten_is_not_kept() {
    let again = multiply_add(41, 20, 30, 41);
    assert_eq!(kept_by_the_first(&[multiply_add(20, 20, 30, 40), again]), [false, true], "by itself");
    let first = multiply_add(80, 20, 30, 80);
    assert_eq!(kept_by_the_first(&[first, multiply_add(20, 21, 41, 20), again]), [false, true]);
    // LDS.128 R20, [R56]
    let load = Instruction(0x000fe800_00000c00_00000000_38147984);
    assert_eq!(kept_by_the_first(&[first, load, again]), [false, true]);
}

/// Cycles for each of many multiply-adds that ask for registers so, over and over: the letters are the banks (even, odd, or Z
/// for none), other registers each time.
fn cycles(words: &[&str]) -> f64 {
    let (mut file, mut drawn) = (RegisterFile::IDLE, 0u32);
    for word in words.iter().cycle().take(60 * words.len()) {
        let [a, b, c] = [0, 1, 2].map(|place| {
            drawn = (drawn + 1) % 16;
            let even = 8 + 2 * drawn as u8 + 64 * place as u8;
            match word.as_bytes()[place] {
                b'E' => even,
                b'O' => even + 1,
                _ => 255,
            }
        });
        file.start(multiply_add(250, a, b, c));
    }
    f64::from(file.cycles()) / 60.0
}

#[test]
fn the_register_file_is_as_slow_as_was_measured() {
    // On an H200: bench/results/h200-2026-11-24-register-file.txt.
    for (words, measured) in [
        (&["EEE"][..], 3.0),
        (&["EEO"], 2.0),
        (&["OEE"], 2.0),
        (&["EZE"], 2.0),
        (&["ZZO"], 1.0),
        (&["EOZ"], 1.0),
        (&["ZEO"], 1.0),
        (&["EEE", "OOO"], 3.0),
        (&["EEO", "EOO"], 3.0),
        (&["EEE", "EEO"], 5.0),
        (&["ZEE", "ZOO"], 2.0),
        (&["ZEE", "ZEE", "ZOO", "ZOO"], 6.0),
        (&["ZEE", "ZOO", "ZOO"], 4.0),
        (&["ZEE", "ZEO", "ZEO", "ZEO"], 5.0),
    ] {
        assert!((cycles(words) / measured - 1.0).abs() < 0.05, "{words:?}: {} and {measured}", cycles(words));
    }
}

#[test]
fn what_is_kept_is_not_read_again() {
    let kept = |n: u8, hint: bool| multiply_add(250, 20, 30, 100 + n % 16).keeping([hint; 2]);
    let time = |hint: bool| {
        let mut file = RegisterFile::IDLE;
        (0..160).for_each(|n| file.start(kept(n, hint)));
        file.cycles()
    };
    // Both factors and half of the sums are in one bank.
    assert_eq!(time(true), 160);
    assert!(time(false) >= 2 * 160, "{}", time(false));
}

#[test]
fn what_was_read_late_is_found_late() {
    // After three reads from its bank a factor is read late; who takes it from the cache at once has to wait for it.
    let first = multiply_add(250, 20, 22, 24);
    let late = multiply_add(250, 28, 31, 33).keeping([true, false]);
    let again = |factor: u8| {
        let mut file = RegisterFile::IDLE;
        [first, late, multiply_add(250, factor, 255, 255)].into_iter().for_each(|next| file.start(next));
        file.cycles()
    };
    assert!(again(28) > again(255), "{} and {}", again(28), again(255));
}

#[test]
fn multiply_adds_of_one_sum_stay_in_their_order() {
    // Three factors for each of twelve sums, one round after the other: far enough apart to change places, but not with each other.
    let mut before = vec![other(200, 15), other(204, 15)];
    for round in 0..3u8 {
        before.extend((0..12u8).map(|sum| {
            multiply_add(100 + sum, 20 + 6 * round + 2 * (sum % 3), 60 + 2 * (sum % 4), 100 + sum)
        }));
    }
    before.extend([other(208, 15), other(212, 15)]);
    let mut after = before.clone();
    function(&mut after).unwrap();
    assert_ne!(before, after);
    assert_eq!(results(&before, false), results(&after, true));
}
