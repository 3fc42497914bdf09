use super::{Axis, Demand, Occupancy, Resource, blocks_per_sm, curve, room, steps, suggestions};
use crate::target::{ComputeCapability, Limits, Target};

fn limits(major: u8, minor: u8) -> &'static Limits {
    Limits::of(ComputeCapability { major, minor }).unwrap()
}

fn of(demand: Demand, limits: &Limits) -> Occupancy {
    demand.check(limits).unwrap();
    Occupancy::of(&demand, limits)
}

/// Blocks that each resource allows: warps, registers, shared memory, blocks, barriers.
fn allowed(occupancy: &Occupancy) -> [Option<u32>; 5] {
    occupancy.limits.map(|l| l.blocks)
}

#[test]
fn the_worklogs_calculation_for_its_kernel_of_1024_threads() {
    // Seed 000: an RTX A6000, 32 x 32 threads of 37 registers, two tiles of 4 KiB.
    let a6000 = Target::by_name("a6000").unwrap().limits;
    let kernel = Demand { shared_static: 8192, ..Demand::new(1024, 37) };
    let found = of(kernel, a6000);
    assert_eq!((found.blocks, found.warps, found.warp_slots), (1, 32, 48));
    assert!((found.fraction() - 0.6666).abs() < 1e-3, "the worklog's 66 %");
    let limiters: Vec<Resource> = found.limiters().collect();
    assert_eq!(limiters, [Resource::Warps, Resource::Registers], "threads of a block and registers");
    // 1 KiB of the system's comes on top: 9 KiB of 100.
    assert_eq!(allowed(&found)[2], Some(11));
    // "Only two blocks at the same time" with 48 KiB each.
    assert_eq!(of(Demand::new(128, 37).with_shared(48 << 10), a6000).blocks, 2);
}

#[test]
fn the_slides_examples_of_registers() {
    // Seed 002, example 1: 21 registers on 3.0 leave every warp slot taken. The slide divides 65536 registers by 21 for
    // 3121 threads; a warp is given 768 rather than 672, which makes 2688: the conclusion holds all the same.
    assert_eq!(of(Demand::new(256, 21), limits(3, 0)).fraction(), 1.0);
    assert_eq!(limits(3, 0).registers_of_warp(21), 768);
    // Example 2: 64 registers, 32 warps of 64. The slide says 3.0, where a thread can only name 63; it holds from 3.5 on.
    assert!(Demand::new(256, 64).check(limits(3, 0)).unwrap_err().to_string().starts_with("registers: 64"));
    let found = of(Demand::new(256, 64), limits(3, 5));
    assert_eq!((found.warps, found.fraction(), found.limiter()), (32, 0.5, Resource::Registers));
}

#[test]
fn the_slides_examples_of_shared_memory() {
    // Seed 002: 16 bytes a thread on 3.0, 48 KiB for 3072 threads, more than there are.
    let with =
        |threads: u32, each: u32| of(Demand::new(threads, 16).with_shared(threads * each), limits(3, 0));
    assert_eq!(with(256, 16).fraction(), 1.0);
    // 32 bytes a thread: 1536 threads, 48 warps of 64 ...
    let found = with(256, 32);
    assert_eq!((found.warps, found.fraction(), found.limiter()), (48, 0.75, Resource::SharedMemory));
    // ... which the slide's division by threads gets only where blocks of that size fill 48 KiB: two of 1024 do not.
    assert_eq!(with(1024, 32).fraction(), 0.5);
}

#[test]
fn the_slides_table_of_block_sizes() {
    let warps = |threads: u32| of(Demand::new(threads, 16), limits(3, 0)).warps;
    for (threads, of_the_slide) in [(32, 16), (64, 32), (128, 64), (256, 64)] {
        assert_eq!(warps(threads), of_the_slide, "{threads} threads");
    }
    assert_eq!(of(Demand::new(64, 16), limits(3, 0)).limiter(), Resource::Blocks);
    // The slide takes all 64 warps for 192 threads as well, as if part of a block could be resident: ten blocks of six
    // warps are 60, and 94 %.
    assert_eq!(warps(192), 60);
}

#[test]
fn the_slides_table_of_limits() {
    // Seed 002, "technical specifications": warps, blocks and KiB of shared memory of a multiprocessor.
    for (major, minor, warps, blocks, shared) in [
        (2, 0, 48, 8, 48),
        (3, 0, 64, 16, 48),
        (3, 2, 64, 16, 48),
        (3, 5, 64, 16, 48),
        (3, 7, 64, 16, 112),
        (5, 0, 64, 32, 64),
        (5, 2, 64, 32, 96),
        (5, 3, 64, 32, 64),
    ] {
        let row = limits(major, minor);
        assert_eq!(
            (row.warps_per_sm, row.blocks_per_sm, row.shared_per_sm >> 10),
            (warps, blocks, shared),
            "{major}.{minor}"
        );
    }
    assert_eq!([limits(2, 0), limits(3, 0), limits(5, 3)].map(|l| l.registers_per_block >> 10), [32, 64, 32]);
}

#[test]
fn each_limit_can_be_the_one_that_counts() {
    let h200 = Target::by_name("h200").unwrap();
    // 64 warps, 65536 registers, 228 KiB less 1 KiB a block, 32 blocks.
    assert_eq!(blocks_per_sm(h200, 1024, 32, 0), 2);
    assert_eq!(blocks_per_sm(h200, 256, 32, 0), 8);
    assert_eq!(blocks_per_sm(h200, 256, 128, 0), 2);
    assert_eq!(blocks_per_sm(h200, 256, 200, 8192), 1, "NVIDIA's own formula gives one block too");
    assert_eq!(blocks_per_sm(h200, 128, 32, 100 << 10), 2);
    assert_eq!(blocks_per_sm(h200, 32, 16, 0), 32);
    let many = of(Demand { barriers: 16, ..Demand::new(64, 16) }, h200.limits);
    assert_eq!((many.blocks, many.limiter()), (4, Resource::Barriers), "64 barriers of a multiprocessor");
}

#[test]
fn what_does_not_fit_at_all_has_no_block() {
    let h200 = Target::by_name("h200").unwrap();
    assert_eq!(blocks_per_sm(h200, 256, 256, 0), 0);
    assert_eq!(blocks_per_sm(h200, 1025, 16, 0), 0);
    assert_eq!(blocks_per_sm(h200, 128, 16, 228 << 10), 0);
    assert_eq!(blocks_per_sm(h200, i64::MAX, i64::MAX, i64::MAX), 0);
    let cannot_launch = of(Demand::new(1024, 65), h200.limits);
    assert_eq!((cannot_launch.blocks, cannot_launch.limiter()), (0, Resource::Registers));
}

#[test]
fn registers_are_counted_in_each_sub_partition() {
    // 40 registers: 1280 a warp, of which 16384 hold 12, not 12.8: 48 warps where the whole file would hold 51.
    let found = of(Demand::new(32 * 17, 40), limits(9, 0));
    assert_eq!(found.blocks, 2, "17 warps of 48; of 51 it would be 3");
    // 176 registers: 5632 a warp, of which each part holds two, though all together would hold 11.
    assert_eq!(of(Demand::new(288, 176), limits(9, 0)).blocks, 0);
    assert_eq!(of(Demand::new(256, 176), limits(9, 0)).blocks, 1);
    // 6.0 has two larger parts: of 176 registers they hold 10 warps, the four of 6.1 hold 8. But what 6.1 cannot launch,
    // such as 9 warps, it does not launch either.
    let (pascal, relative) = (limits(6, 0), limits(6, 1));
    let blocks = |warps: u32, of_this: &Limits| of(Demand::new(32 * warps, 176), of_this).blocks;
    assert_eq!([blocks(5, pascal), blocks(5, relative)], [2, 1]);
    assert_eq!([blocks(9, pascal), blocks(9, relative)], [0, 0]);
}

#[test]
fn a_block_has_half_the_registers_where_the_table_says_so() {
    assert_eq!(of(Demand::new(1024, 64), limits(6, 2)).blocks, 0);
    assert_eq!(of(Demand::new(512, 64), limits(6, 2)).blocks, 2, "two blocks have them all");
    assert_eq!(of(Demand::new(1024, 64), limits(6, 1)).blocks, 1);
    // Five warps of 5632 registers are less than half of all, but a launch takes them for eight.
    assert_eq!([limits(6, 2), limits(6, 1)].map(|l| of(Demand::new(160, 176), l).blocks), [0, 1]);
}

#[test]
fn fermi_follows_the_spreadsheet() {
    // 21 registers: 704 a warp in units of 64, 46 warps in 32768; blocks of eight leave six of these out.
    let fermi = limits(2, 0);
    let found = of(Demand::new(256, 21), fermi);
    assert_eq!((found.blocks, found.warps, found.limiter()), (5, 40, Resource::Registers));
    assert_eq!(of(Demand::new(256, 20), fermi).fraction(), 1.0);
    // 3200 bytes are 25 units of 128, five of which fit 16 KiB; in units of 256 only four would.
    let small = Demand { carveout: Some(0), ..Demand::new(128, 16).with_shared(3200) };
    assert_eq!(of(small, fermi).blocks, 5);
}

#[test]
fn the_carve_out_comes_in_steps_and_gives_way_to_one_block() {
    let hopper = limits(9, 0);
    let with = |percent: u32, bytes: u32| {
        of(Demand { carveout: Some(percent), ..Demand::new(128, 16).with_shared(bytes) }, hopper)
    };
    let carveout = |percent: u32, bytes: u32| with(percent, bytes).carveout_bytes >> 10;
    assert_eq!([0, 1, 25, 50, 99, 100].map(|p| carveout(p, 0)), [8, 8, 64, 132, 228, 228]);
    // 30 KiB, with the system's 31, in 114 -> 132 KiB.
    assert_eq!(with(50, 30 << 10).blocks, 4);
    // 150 KiB do not fit 8; 164 is the next.
    assert_eq!((carveout(1, 150 << 10), with(1, 150 << 10).blocks), (164, 1));
    // Before 7.0 the largest is taken instead of the next.
    let kepler = Demand { carveout: Some(0), ..Demand::new(128, 16).with_shared(20 << 10) };
    assert_eq!(of(kepler, limits(3, 5)).carveout_bytes >> 10, 48);
}

#[test]
fn more_than_48_kib_wants_opting_in() {
    let ask = |kib: u32, opted_in: bool| {
        of(Demand { opted_in, ..Demand::new(128, 16).with_shared(kib << 10) }, limits(9, 0)).blocks
    };
    assert_eq!([ask(48, false), ask(49, false), ask(49, true), ask(227, true)], [4, 0, 4, 1]);
}

#[test]
fn what_no_kernel_can_ask_for_is_refused_by_name() {
    let hopper = limits(9, 0);
    let refused = |demand: Demand| demand.check(hopper).unwrap_err().to_string();
    assert!(refused(Demand::new(0, 16)).starts_with("threads: 0 is no number"));
    assert!(refused(Demand::new(2000, 16)).contains("give a number from 1 to 1024"));
    assert!(refused(Demand::new(32, 300)).starts_with("registers: 300"));
    assert!(refused(Demand::new(32, 16).with_shared(232449)).starts_with("shared-dynamic: 232449"));
    let declared = Demand { shared_static: u32::MAX, shared_dynamic: u32::MAX, ..Demand::new(32, 16) };
    assert!(refused(declared).starts_with("shared-static: 8589934590"));
    assert!(refused(Demand { carveout: Some(101), ..Demand::new(32, 16) }).starts_with("carveout: 101"));
    assert!(refused(Demand { barriers: 17, ..Demand::new(32, 16) }).starts_with("barriers: 17"));
    assert!(Demand::new(1024, 255).with_shared(232448).check(hopper).is_ok());
}

#[test]
fn what_is_left_over_is_what_blocks_do_not_take() {
    let found = of(Demand::new(256, 64).with_shared(32 << 10), limits(9, 0));
    assert_eq!((found.blocks, found.limiter()), (4, Resource::Registers));
    assert_eq!(Resource::ALL.map(|r| found.left(r)), [32, 0, (228 - 4 * 33) << 10, 28, 60].map(Some));
    assert_eq!(of(Demand::new(256, 64), limits(7, 0)).left(Resource::Barriers), None);
}

#[test]
fn suggestions_raise_occupancy_by_the_least_change() {
    let hopper = limits(9, 0);
    let demand = Demand::new(256, 64).with_shared(32 << 10);
    let found = suggestions(&demand, hopper);
    let registers = found.iter().find(|s| s.changes[0].what == "registers").unwrap();
    assert_eq!((registers.changes[0].to, registers.occupancy.blocks), (48, 5));
    let barely = Demand { registers: 49, ..demand };
    assert_eq!(Occupancy::of(&barely, hopper).blocks, 4, "one register more is too many");
    assert!(found.iter().all(|s| s.changes[0].what != "shared_memory"), "registers limit, not shared memory");

    // Both limit to two blocks: neither change alone helps.
    let tied = Demand::new(256, 128).with_shared(100 << 10);
    let found = suggestions(&tied, hopper);
    let both: Vec<(&str, u32)> = found[0].changes.iter().map(|c| (c.what, c.to)).collect();
    assert_eq!(both, [("registers", 80), ("shared_memory", 75 << 10)]);
    assert_eq!(found[0].occupancy.blocks, 3);

    let small = suggestions(&Demand { carveout: Some(10), ..Demand::new(128, 16).with_shared(8192) }, hopper);
    assert!(small.iter().any(|s| s.changes[0].what == "carveout" && s.occupancy.carveout_bytes == 64 << 10));
    assert!(suggestions(&Demand::new(256, 32), hopper).is_empty(), "every warp slot is taken");
    let stuck = suggestions(&Demand::new(1024, 65), hopper);
    assert_eq!(stuck[0].changes[0].to, 64, "what cannot be launched is told how it can");
}

#[test]
fn every_suggestion_keeps_its_promise() {
    for limits in Limits::all() {
        for threads in [32, 96, 256, 544, 1024] {
            for registers in [16, 33, 63] {
                for shared in [0, 5000, 24 << 10, 48 << 10] {
                    let demand = Demand::new(threads, registers).with_shared(shared);
                    let now = of(demand, limits);
                    for suggestion in suggestions(&demand, limits) {
                        suggestion.demand.check(limits).unwrap();
                        assert_eq!(Occupancy::of(&suggestion.demand, limits), suggestion.occupancy);
                        assert!(suggestion.occupancy.warps > now.warps, "{demand:?}: {suggestion:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn curves_go_through_todays_point_and_fall_with_registers() {
    let hopper = limits(9, 0);
    let demand = Demand { shared_static: 1024, ..Demand::new(256, 64).with_shared(32 << 10) };
    for axis in Axis::ALL {
        let points = curve(&demand, hopper, axis);
        let here = points.iter().find(|p| p.value == axis.value(&demand)).unwrap();
        assert_eq!(here.warps, Occupancy::of(&demand, hopper).warps, "{axis:?}");
        assert_eq!(points.last().map(|p| p.value), axis.values(hopper).last());
        if axis != Axis::Threads {
            assert!(points.is_sorted_by(|a, b| a.warps >= b.warps), "{axis:?}");
        }
        let steps = steps(&points);
        assert_eq!(steps.first().map(|s| s.0), points.first().copied());
        assert!(steps.windows(2).all(|pair| pair[0].1.value < pair[1].0.value));
    }
}

#[test]
fn there_is_room_up_to_where_a_block_is_lost() {
    let hopper = limits(9, 0);
    let demand = Demand::new(256, 60).with_shared(32 << 10);
    // Four blocks: 16384 registers each, and a quarter of 228 KiB less the system's.
    assert_eq!(room(&demand, hopper, Axis::Registers), Some(64));
    assert_eq!(room(&demand, hopper, Axis::SharedMemory), Some(56 << 10));
    assert_eq!(room(&Demand::new(1024, 65), hopper, Axis::Registers), None);
}
