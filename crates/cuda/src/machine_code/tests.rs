use super::instruction::{Instruction, cycles};
use super::segment::{Constraints, segments, targets};
use super::{function, register_cycles};

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
    assert_eq!(reordered.cycles, [register_cycles(&before), register_cycles(&after)]);
    // A row's factor is in the bank of the column's factor or of the sum. Kept for all columns, it is read once a row.
    assert!(reordered.cycles[0] == 32 && reordered.cycles[1] <= 20, "{:?}", reordered.cycles);
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
    assert_eq!([before[0], before[1].keeping([false; 2])], after[..2]);
    let waiting = |code: &[Instruction]| code.iter().map(|i| (i.waits(), i.stall())).collect::<Vec<_>>();
    assert_eq!(waiting(&before), waiting(&after), "waits belong to places");
    for pair in after[2..19].windows(2) {
        let both = [0, 1].map(|place| pair[0].sources()[place] == pair[1].sources()[place]);
        assert_eq!(pair[0].kept(), both.map(|same| same && pair[1].is_multiply_add()));
    }
    assert_eq!(before[18..], after[18..]);
    let mut again = before.clone();
    function(&mut again).unwrap();
    assert_eq!(again, after, "the same code gets the same order");
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

#[test]
fn a_value_that_is_overwritten_is_not_kept() {
    let [first, next] = [multiply_add(20, 20, 30, 40), multiply_add(41, 20, 30, 41)];
    let kept = super::order::keeping_for(first, next);
    assert_eq!(kept.kept(), [false, true]);
    assert_eq!(cycles(next, Some(kept)), 1);
}
