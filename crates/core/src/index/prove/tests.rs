//! What the prover can tell, and what it must not claim.

use super::{Facts, Touch, disjoint_iterations, prove};
use crate::index::{Comparison, Cond, Index};
use crate::sym::Sym;

fn v(sym: &Sym) -> Index {
    Index::var(sym)
}

fn upto(facts: &mut Facts, name: &str, hi: impl Into<Index>) -> Sym {
    let sym = Sym::new(name);
    facts.runs_over(&sym, &0.into(), &hi.into(), &1.into());
    sym
}

fn size(facts: &mut Facts, name: &str) -> Sym {
    let sym = Sym::new(name);
    facts.at_least(&sym, 0);
    sym
}

#[test]
fn a_guard_is_needed_unless_the_tile_divides_the_size() {
    let mut facts = Facts::new();
    let m = size(&mut facts, "M");
    let by = upto(&mut facts, "by", v(&m).ceil_div(128));
    let r = upto(&mut facts, "r", 128);
    let guard = Cond::lt(&v(&by).scaled(128) + &v(&r), v(&m));
    assert_eq!(prove(&facts, &guard), None);
    // Without the assumption, the first row of each tile is still inside.
    assert_eq!(prove(&facts, &Cond::lt(v(&by).scaled(128), v(&m))), Some(true));
    facts.assume(&Cond::eq(v(&m).rem(128), 0.into()));
    assert_eq!(prove(&facts, &guard), Some(true));
    assert_eq!(facts.simplify_cond(&guard), Cond::TRUE);
    assert_eq!(prove(&facts, &Cond::lt(&v(&by).scaled(128) + &v(&r).offset(1), v(&m))), None);
    assert_eq!(prove(&facts, &guard.negate()), Some(false));
}

#[test]
fn a_weaker_assumption_is_enough_for_a_smaller_tile_only() {
    let mut facts = Facts::new();
    let m = size(&mut facts, "M");
    facts.assume(&Cond::eq(v(&m).rem(64), 0.into()));
    for (tile, expected) in [(32, Some(true)), (64, Some(true)), (128, None)] {
        let mark = facts.mark();
        let by = upto(&mut facts, "by", v(&m).ceil_div(tile));
        let r = upto(&mut facts, "r", tile);
        let guard = Cond::lt(&v(&by).scaled(tile) + &v(&r), v(&m));
        assert_eq!(prove(&facts, &guard), expected, "tile {tile}");
        facts.reset(mark);
    }
}

#[test]
fn vector_accesses_are_aligned_by_congruence() {
    let mut facts = Facts::new();
    let lda = size(&mut facts, "lda");
    let tx = upto(&mut facts, "tx", 16);
    assert!(!facts.is_multiple(&v(&lda), 4));
    facts.assume(&Cond::eq(v(&lda).rem(8), 0.into()));
    assert!(facts.is_multiple(&v(&lda), 4));
    assert!(facts.is_multiple(&v(&lda), 8));
    assert!(!facts.is_multiple(&v(&lda), 16));
    assert!(facts.is_multiple(&(&v(&tx).scaled(4) + &v(&lda)), 4));
    assert!(!facts.is_multiple(&v(&tx).scaled(4).offset(2), 4));
}

#[test]
fn guards_are_used_and_forgotten() {
    let mut facts = Facts::new();
    let (n, flag) = (size(&mut facts, "n"), Sym::new("beta0"));
    let i = upto(&mut facts, "i", v(&n).ceil_div(4));
    let q = upto(&mut facts, "q", 4);
    let last = Cond::lt(&v(&i).scaled(4) + &v(&q), v(&n));
    let mark = facts.mark();
    facts.assume(&Cond::le(v(&i).scaled(4).offset(4), v(&n)).and(Cond::Flag(flag.clone())));
    assert_eq!(prove(&facts, &last), Some(true));
    assert_eq!(prove(&facts, &Cond::Flag(flag.clone())), Some(true));
    assert_eq!(prove(&facts, &Cond::Flag(flag.clone()).negate()), Some(false));
    facts.reset(mark);
    assert_eq!(prove(&facts, &last), None);
    assert_eq!(prove(&facts, &Cond::Flag(flag)), None);
}

#[test]
fn minima_choices_and_definitions_are_taken_apart() {
    let mut facts = Facts::new();
    let k = size(&mut facts, "K");
    let c = upto(&mut facts, "c", 4);
    let valid = v(&k).offset(-8).minimum(&8.into()).maximum(&0.into());
    assert_eq!(prove(&facts, &Cond::le(valid.clone(), 8.into())), Some(true));
    assert_eq!(prove(&facts, &Cond::le(0.into(), valid.clone())), Some(true));
    assert_eq!(prove(&facts, &Cond::le(valid, 7.into())), None);
    let chosen = Index::select(Cond::lt(v(&c), 2.into()), v(&c).offset(2), v(&c));
    assert_eq!(prove(&facts, &Cond::le(2.into(), chosen.clone())), Some(true));
    assert_eq!(prove(&facts, &Cond::le(3.into(), chosen)), None);
    let row = Sym::new("row");
    facts.define(&row, &v(&c).scaled(2).offset(1));
    assert_eq!(prove(&facts, &Cond::eq(v(&row).rem(2), 1.into())), Some(true));
    assert_eq!(prove(&facts, &Cond::lt(v(&row), 8.into())), Some(true));
}

#[test]
fn lists_steps_and_swizzles() {
    let mut facts = Facts::new();
    let d = Sym::new("d");
    facts.is_one_of(&d, &[16, 8, 4]);
    assert_eq!(prove(&facts, &Cond::eq(v(&d).rem(4), 0.into())), Some(true));
    assert_eq!(prove(&facts, &Cond::compare(Comparison::Ne, v(&d), 5.into())), Some(true));
    let n = size(&mut facts, "n");
    let k = Sym::new("k");
    facts.runs_over(&k, &3.into(), &v(&n), &4.into());
    assert_eq!(prove(&facts, &Cond::eq(v(&k).rem(4), 3.into())), Some(true));
    assert_eq!(prove(&facts, &Cond::eq(v(&k).rem(8), 3.into())), None);
    let (r, c) = (upto(&mut facts, "r", 8), upto(&mut facts, "c", 4));
    let swizzled = v(&r).rem(4).xor(&v(&c));
    assert_eq!(prove(&facts, &Cond::lt(swizzled.clone(), 4.into())), Some(true));
    let twice = Cond::eq(swizzled.xor(&v(&c)), v(&r).rem(4));
    assert_eq!(prove(&facts, &twice), Some(true));
}

/// Whatever the prover claims holds at every point, on a few thousand conditions made at random.
#[test]
fn claims_hold_at_every_point() {
    let mut seed = 7u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    let mut decided = 0;
    for _ in 0..1500 {
        let mut facts = Facts::new();
        let n = size(&mut facts, "n");
        let tile = [2, 3, 4, 8][random(4) as usize];
        let i = upto(&mut facts, "i", v(&n).ceil_div(tile));
        let j = upto(&mut facts, "j", tile);
        let guard = match random(4) {
            0 => Cond::eq(v(&n).rem(tile), 0.into()),
            1 => Cond::lt(&v(&i).scaled(tile) + &v(&j), v(&n)),
            2 => Cond::compare(Comparison::Ne, v(&n), (random(6) as i64).into()),
            _ => Cond::TRUE,
        };
        facts.assume(&guard);
        let mut term = || {
            let small = random(9) as i64 - 4;
            match random(6) {
                0 => v(&n),
                1 => &v(&i).scaled(tile) + &v(&j),
                2 => (&v(&n) + &v(&j)).div(tile),
                3 => (&v(&i) + &v(&n)).rem(tile),
                4 => v(&n).minimum(&v(&j).offset(small)),
                _ => v(&i).scaled(small),
            }
            .offset(random(5) as i64 - 2)
        };
        let (a, b) = (term(), term());
        let how = [Comparison::Lt, Comparison::Le, Comparison::Eq, Comparison::Ne][random(4) as usize];
        let cond = Cond::compare(how, a, b);
        let Some(claim) = prove(&facts, &cond) else { continue };
        decided += 1;
        for size in 0..20i64 {
            for tile_index in 0..(size + tile - 1) / tile {
                for inside in 0..tile {
                    let value = |s: &Sym| {
                        Some(if *s == n {
                            size
                        } else if *s == i {
                            tile_index
                        } else {
                            inside
                        })
                    };
                    if guard.eval(&value) == Ok(true) {
                        let at = (size, tile_index, inside);
                        assert_eq!(
                            cond.eval(&value),
                            Ok(claim),
                            "{cond} under {guard}, tile {tile}, at {at:?}"
                        );
                    }
                }
            }
        }
    }
    assert!(decided > 300, "only {decided} decided");
}

#[test]
fn iterations_that_write_their_own_elements_are_disjoint() {
    let mut facts = Facts::new();
    let n = size(&mut facts, "n");
    let by = upto(&mut facts, "by", v(&n).ceil_div(128));
    let common = |s: &Sym| *s == n;
    let ty = upto(&mut facts, "ty", 16);
    let i = upto(&mut facts, "i", 8);
    let row = [&(&v(&by).scaled(128) + &v(&ty).scaled(8)) + &v(&i)];
    let test = |var: &Sym, common: &dyn Fn(&Sym) -> bool, index: &[Index]| {
        let touch = Touch { facts: &facts, index };
        disjoint_iterations(var, common, touch, touch)
    };
    assert_eq!(test(&by, &common, &row), Some(true));
    let inside = |s: &Sym| *s == n || *s == by;
    assert_eq!(test(&ty, &inside, &row), Some(true));
    // Tiles that overlap by one row.
    let overlapping = [&(&v(&by).scaled(127) + &v(&ty).scaled(8)) + &v(&i)];
    assert_eq!(test(&by, &common, &overlapping), None);
    // Every iteration of `ty` touches row `i` of the tile.
    let outside_i = |s: &Sym| *s != ty;
    assert_eq!(test(&ty, &outside_i, &[v(&i)]), Some(false));
    assert_eq!(test(&ty, &inside, &[v(&i)]), Some(false));
    assert_eq!(test(&ty, &inside, &[&v(&i) + &v(&ty)]), None);
}

#[test]
fn a_read_of_the_next_element_is_not_disjoint_from_the_write_of_it() {
    let mut facts = Facts::new();
    let n = size(&mut facts, "n");
    let i = upto(&mut facts, "i", v(&n));
    let common = |s: &Sym| *s == n;
    let write = [v(&i).scaled(2)];
    let test = |read: Index| {
        let read = [read];
        let (a, b) = (Touch { facts: &facts, index: &write }, Touch { facts: &facts, index: &read });
        disjoint_iterations(&i, &common, a, b)
    };
    assert_eq!(test(v(&i).scaled(2).offset(1)), Some(true));
    assert_eq!(test(v(&i).scaled(2)), Some(true));
    assert_eq!(test(v(&i).scaled(2).offset(2)), None);
    assert_eq!(test(v(&i)), None);
}

#[test]
fn strided_and_shared_loops_are_partitions() {
    let mut facts = Facts::new();
    let n = size(&mut facts, "n");
    let grid = Sym::new("G");
    facts.at_least(&grid, 1);
    let k = Sym::new("k");
    facts.runs_over(&k, &0.into(), &v(&n), &v(&grid).scaled(12));
    let s = upto(&mut facts, "s", 12);
    let rows = [&v(&k) + &v(&s)];
    let common = |x: &Sym| *x == n || *x == grid;
    let touch = Touch { facts: &facts, index: &rows };
    assert_eq!(disjoint_iterations(&k, &common, touch, touch), Some(true));
    let g = upto(&mut facts, "g", v(&grid));
    let (tm, tn) = (upto(&mut facts, "tm", v(&n)), upto(&mut facts, "tn", v(&n)));
    let tile = [v(&tm).scaled(4), v(&tn)];
    let test = |facts: &Facts| {
        let touch = Touch { facts, index: &tile };
        disjoint_iterations(&g, &common, touch, touch)
    };
    assert_eq!(test(&facts), Some(false));
    // A box whose size changes from one iteration to the next is shared out anew each time.
    let mark = facts.mark();
    facts.partition(&v(&g), &[tm.clone(), tn.clone()], &[&v(&s), &v(&grid)]);
    assert_eq!(test(&facts), None);
    facts.reset(mark);
    facts.partition(&v(&g), &[tm.clone(), tn.clone()], &[&v(&n), &v(&grid)]);
    assert_eq!(test(&facts), Some(true));
}

#[test]
fn only_unguarded_iterations_certainly_collide() {
    let mut facts = Facts::new();
    let n = size(&mut facts, "n");
    let i = upto(&mut facts, "i", v(&n));
    let common = |s: &Sym| *s == n;
    let zero = [Index::default()];
    let test = |facts: &Facts| {
        let touch = Touch { facts, index: &zero };
        disjoint_iterations(&i, &common, touch, touch)
    };
    assert_eq!(test(&facts), Some(false));
    for guard in [Cond::eq(v(&i), 0.into()), Cond::lt(v(&i), 1.into())] {
        let mark = facts.mark();
        facts.assume(&guard);
        assert_eq!(test(&facts), Some(true), "{guard}");
        facts.reset(mark);
    }
    facts.assume(&Cond::lt(v(&i).rem(7), 1.into()));
    assert_eq!(test(&facts), None);
}

#[test]
fn everything_known_holds_at_every_sample() {
    let mut facts = Facts::new();
    let (m, lda) = (size(&mut facts, "M"), size(&mut facts, "lda"));
    facts.assume(&Cond::eq(v(&lda).rem(4), 0.into()));
    let outside = facts.mark();
    let by = upto(&mut facts, "by", v(&m).ceil_div(128));
    let i = Sym::new("i");
    facts.runs_over(&i, &v(&by), &v(&m), &16.into());
    let step = Sym::new("step");
    facts.is_one_of(&step, &[16, 8, 4]);
    let guard = Cond::lt(&v(&by).scaled(128) + &v(&step), v(&m));
    facts.assume(&guard);
    assert!(facts.known.iter().all(|c| facts.samples.outcomes(c) == (true, false)), "{:?}", facts.samples);
    // Both arms of a condition that is open are seen at some sample.
    assert_eq!(facts.samples.outcomes(&Cond::lt(v(&i).offset(100), v(&m))), (true, true));
    // A point that a guard has ruled out is back where the guard does not hold.
    facts.assume(&Cond::lt(v(&m), 0.into()));
    assert_eq!(facts.samples.outcomes(&guard), (false, false));
    facts.reset(outside);
    assert_eq!(facts.samples.outcomes(&Cond::eq(v(&m), 100.into())), (true, true));
}

#[test]
fn samples_are_not_asked_about_what_was_assumed_of_a_symbol_before_its_range() {
    let mut facts = Facts::new();
    let t = Sym::new("t");
    facts.assume(&Cond::lt(v(&t), 2.into()));
    facts.runs_over(&t, &0.into(), &8.into(), &1.into());
    assert_eq!(prove(&facts, &Cond::lt(v(&t), 2.into())), Some(true));
    assert_eq!(facts.samples.outcomes(&Cond::lt(v(&t), 2.into())), (false, false));
}
