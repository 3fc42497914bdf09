use std::path::Path;

use super::synchronise;
use crate::ir::{Program, Stmt, Sync, parse, walk};

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs").join(name).with_extension("ww");
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn program(name: &str) -> Program {
    parse::program(&text(name)).expect("reads")
}

fn without_barriers(mut program: Program) -> Program {
    program.body = walk::rewrite(program.body, &mut |stmt| match stmt {
        Stmt::Sync(Sync::Barrier) => Vec::new(),
        other => vec![other],
    });
    program
}

/// What [`synchronise`] makes of a text of statements at block scope.
fn placed(body: &str) -> String {
    let text =
        format!("program p(n: size, x: in f32[n], y: out f32[n]) {{ for b in block.x(n) {{ {body} }} }}");
    made(&text)
}

fn made(text: &str) -> String {
    let program = parse::program(text).expect("reads");
    synchronise(program).map_or_else(|d| d.to_string(), |p| p.to_string())
}

#[track_caller]
fn expect(before: &str, after: &str) {
    let wanted =
        format!("program p(n: size, x: in f32[n], y: out f32[n]) {{ for b in block.x(n) {{ {after} }} }}");
    assert_eq!(placed(before), parse::program(&wanted).expect("reads").to_string());
}

const FINISHED: [&str; 9] = [
    "sgemm_block_tiling",
    "sgemm_split_k",
    "sgemm_virtual_threads",
    "tsmttsm_atomic",
    "tsmttsm_two_pass",
    "reduce_two_pass",
    "scan_look_back",
    "hgemm_cp_async",
    "hgemm_tma_wgmma",
];

#[test]
fn finished_programs_stay_as_they_are() {
    for name in FINISHED {
        let program = program(name);
        assert_eq!(synchronise(program).expect(name).to_string(), text(name));
    }
}

#[test]
fn stripped_programs_get_their_barriers_back() {
    for name in FINISHED.into_iter().filter(|n| *n != "hgemm_tma_wgmma") {
        let stripped = without_barriers(program(name));
        assert_eq!(synchronise(stripped).expect(name).to_string(), text(name), "{name}");
    }
}

#[test]
fn other_programs_with_mbarriers_are_left_alone() {
    let name = "pictures/roles_inside";
    assert_eq!(synchronise(program(name)).expect("has mbarriers").to_string(), text(name));
}

#[test]
fn an_arrival_says_nothing_of_threads_that_have_not_met_one_that_arrives() {
    let step = |before_arrival: &str, at_end: &str| {
        format!(
            "alloc s: f32[64] shared
             alloc empty: mbar ring 2 count 2
             for k in 0..n {{
               for e in threads(32@1) {{
                 if 1 <= k {{ await(empty[k - 1]) }}
                 s[e] = x[64*k + e]
                 s[e + 32] = x[64*k + e + 32]
               }}
               barrier
               for t in threads(64@1) {{ y[64*k + t] = s[63 - t] }}
               for w in threads(2@32) {{ {before_arrival} for e in threads(1@1) {{ arrive(empty[k]) }} }}
               {at_end}
             }}"
        )
    };
    expect(&step("barrier", ""), &step("barrier", ""));
    expect(&step("", ""), &step("", "barrier"));
    // Only the first thread arrives after it has written; a barrier comes after the loop.
    let around = |between: &str| {
        format!(
            "alloc q: f32[64] shared
             alloc full: mbar ring 2 count 1
             for t in threads(64@1) {{ q[t] = x[t] }}
             for k in 0..n {{ for e in threads(1@1) {{ arrive(full[k]) }} await(full[k]) }}
             {between} for t in threads(64@1) {{ y[t] = q[63 - t] }}"
        )
    };
    expect(&around(""), &around("barrier"));
}

#[test]
fn rows_of_any_length_are_not_handed_on_inside_a_range_of_threads() {
    let handed_on = |from: &str, to: &str| {
        made(&format!(
            "program p(n: size, z: inout f32[8, n], y: out f32[8, n]) {{
               for b in block.x(1), w in threads(2@4) {{
                 for e in threads(1@1) {{ for i in 0..4, j in {from} {{ z[4*w + i, j] = 1 }} }}
                 for i in threads(4@1) {{ for j in {to} {{ y[4*w + i, j] = z[4*w + i, j] }} }}
               }}
             }}"
        ))
    };
    let refused = |text: String| text.contains("split the thread loop between the two statements");
    assert!(refused(handed_on("0..n", "0..n")) && refused(handed_on("1..n", "1..n")));
    // What the other threads read need not be there.
    assert!(!refused(handed_on("0..1", "1..n")));
}

#[test]
fn iterations_that_write_elements_of_their_own_are_not_told_apart_by_barriers() {
    let step = |index: &str, at_end: &str| {
        format!(
            "for k in 0..n {{
               for w in threads(2@32), t in threads(32@1) {{ y[96*k + 32*w + t] = 1 }}
               for t in threads(32@1) {{ y[{index}] = 1 }}
               {at_end}
             }}"
        )
    };
    expect(&step("96*k + 64 + t", ""), &step("96*k + 64 + t", ""));
    // These meet what another thread writes, in the next iteration or after a hundred.
    for index in ["96*k + 96 + 31 - t", "96*k + 9600 + 31 - t"] {
        expect(&step(index, ""), &step(index, "barrier"));
    }
}

#[test]
fn double_buffering_needs_one_barrier_a_step() {
    expect(
        "alloc s: f32[2, 64] shared
         for t in threads(64@1) { s[0, t] = x[t] }
         for k in 0..n {
           if k + 1 < n { for t in threads(64@1) { s[(k + 1)%2, t] = x[64*k + t + 64] } }
           for t in threads(64@1) { y[t] = s[k%2, 63 - t] }
         }",
        "alloc s: f32[2, 64] shared
         for t in threads(64@1) { s[0, t] = x[t] }
         barrier
         for k in 0..n {
           if k + 1 < n { for t in threads(64@1) { s[(k + 1)%2, t] = x[64*k + t + 64] } }
           for t in threads(64@1) { y[t] = s[k%2, 63 - t] }
           barrier
         }",
    );
}

#[test]
fn elements_that_stay_with_their_thread_need_no_barrier() {
    let text = "alloc s: f32[64, 4] shared
        for t in threads(64@1) { for u in unroll 0..4 { s[t, u] = x[t] } }
        for r in threads(4@16), c in threads(16@1) { for u in unroll 0..4 { y[64*u + 16*r + c] = s[16*r + c, u] } }";
    expect(text, text);
    // The same elements in another order of the threads do need one.
    let with = |r: &str, barrier: &str| {
        format!(
            "alloc s: f32[64] shared
             for t in threads(64@1) {{ s[t] = x[t] }} {barrier}
             for r in threads(4@16), c in threads(16@1) {{ y[16*r + c] = s[{r}] }}"
        )
    };
    expect(&with("4*c + r", ""), &with("4*c + r", "barrier"));
}

#[test]
fn slots_of_a_ring_do_not_conflict_until_it_comes_round() {
    let with = |depth: i64, barrier: &str| {
        format!(
            "alloc s: f32[3, 64] shared
             for k in 0..n {{
               for t in threads(64@1) {{ s[(k + 1)%{depth}, t] = x[k] }}
               for t in threads(64@1) {{ y[t] = s[k%{depth}, t] }}
               {barrier}
             }}"
        )
    };
    // Each thread reads what it wrote itself.
    expect(&with(3, ""), &with(3, ""));
    let with = |barrier: &str| {
        format!(
            "alloc s: f32[3, 64] shared
             for k in 0..n {{
               for t in threads(64@1) {{ s[k%3, t] = x[k] }}
               {barrier}
               for t in threads(64@1) {{ y[t] = s[k%3, 63 - t] }}
             }}"
        )
    };
    // Three iterations later the slot is filled again, but two barriers have passed by then.
    expect(&with(""), &with("barrier"));
}

#[test]
fn a_ring_without_any_barrier_inside_an_iteration_needs_one_when_it_comes_round() {
    let with = |barrier: &str| {
        format!(
            "alloc s: f32[4, 64] shared
             for k in 0..n {{
               for t in threads(64@1) {{ s[k%4, t] = x[k] }}
               for t in threads(64@1) {{ y[t] = s[(k + 2)%4, 63 - t] }}
               {barrier}
             }}"
        )
    };
    expect(&with(""), &with("barrier"));
}

#[test]
fn deep_nests_of_loops_are_looked_at_in_reasonable_time() {
    // Ten times as long for each loop, as it once was, would take years.
    let head: String = (0..10).map(|n| format!("for k{n} in 0..n {{ ")).collect();
    let with = |element: &str, barrier: &str| {
        format!(
            "alloc s: f32[64] shared {head}
               for t in threads(64@1) {{ s[t] = x[k0 + k9] }} {barrier}
               for t in threads(64@1) {{ y[t] = s[{element}] }} {barrier}
             {}",
            "} ".repeat(10)
        )
    };
    expect(&with("63 - t", ""), &with("63 - t", "barrier"));
    expect(&with("t", ""), &with("t", ""));
}

#[test]
fn a_barrier_joins_no_more_threads_than_the_list_it_stands_in() {
    let with = |barrier: &str| {
        format!(
            "alloc s: f32[2, 64] shared
             for w in threads(2@64) {{
               for t in threads(64@1) {{ s[w, t] = x[t] }}
               {barrier}
               for t in threads(64@1) {{ y[64*w + t] = s[w, 63 - t] }}
             }}"
        )
    };
    expect(&with(""), &with("barrier"));
    let in_role = |barrier: &str| {
        format!(
            "alloc s: f32[64] shared
             roles first 0..32, rest 32..96
             on rest {{
               for t in threads(64@1) {{ s[t] = x[t] }}
               {barrier}
               for t in threads(64@1) {{ y[t] = s[63 - t] }}
             }}"
        )
    };
    expect(&in_role(""), &in_role("barrier"));
}

#[test]
fn device_memory_that_the_launch_writes_is_watched_too() {
    let with = |barrier: &str| {
        format!(
            "for t in threads(64@1) {{ y[64*b + t] = x[t] }} {barrier}
             for t in threads(64@1) {{ y[64*b + t] += y[64*b + 63 - t] }}"
        )
    };
    let refused = placed(&with(""));
    assert!(
        refused.contains("an element of `y` is written by one thread while another reads it"),
        "{refused}"
    );
    let with = |barrier: &str| {
        format!(
            "alloc r: f32[64@1] reg
             for t in threads(64@1) {{ y[64*b + t] = x[t] }} {barrier}
             for t in threads(64@1) {{ r[t] = y[64*b + 63 - t] }}"
        )
    };
    expect(&with(""), &with("barrier"));
}

#[test]
fn conflicts_under_either_branch_are_seen_after_it() {
    let with = |barrier: &str| {
        format!(
            "alloc s: f32[64] shared
             if n < 100 {{ for t in threads(64@1) {{ s[t] = 1 }} }} else {{ for t in threads(64@1) {{ s[63 - t] = 2 }} }}
             {barrier}
             for t in threads(64@1) {{ y[t] = s[t] }}"
        )
    };
    expect(&with(""), &with("barrier"));
}

#[test]
fn values_that_pass_between_threads_inside_a_nest_are_refused() {
    let refused =
        synchronise(program("pictures/thread_loop_not_split")).expect_err("no barrier can stand there");
    assert_eq!(
        refused.to_string(),
        "b.t: an element of `s` is read by one thread while another writes it in the same `t` loop, because no barrier \
         can stand inside a thread loop over smaller ranges; split the thread loop between the two statements"
    );
    let refused = placed("alloc s: f32[2] shared for t in threads(64@1) { s[t/32] = x[t] }");
    assert!(refused.contains("several threads write the same element of `s`"), "{refused}");
    let refused = placed("for t in threads(64@1) { alloc s: f32[2] shared  s[0] = 1 }");
    assert!(refused.contains("the shared buffer `s` stands inside a thread loop"), "{refused}");
    let refused = placed("for t in threads(1000@1), u in threads(1000@1) { y[t] = x[u] }");
    assert!(refused.contains("`u` asks for 1000 times 1 threads"), "{refused}");
    let refused = placed("for t in threads(4000000000@1) { y[t] = x[t] }");
    assert!(refused.contains("ask for 4000000000 threads in a block"), "{refused}");
    let refused = placed("for w in threads(3@21) { barrier }");
    assert!(refused.contains("which are no whole warps"), "{refused}");
}

#[test]
fn conditions_that_all_threads_share_hide_no_conflict() {
    let written_twice = |cond: &str| {
        placed(&format!(
            "alloc s: f32[1] shared
             for o in 0..3 {{ for t in threads(3@1) {{ if {cond} {{ s[0] = 1 }} }} }}"
        ))
    };
    let refused = |text: &str| text.contains("several threads write the same element of `s`");
    for shared in ["o < 2", "1 <= o", "b < 4", "o%2 == 1 && b < 4"] {
        assert!(refused(&written_twice(shared)), "{shared}");
    }
    // One thread writes; or as many as there are rows, which are few.
    for other in ["t == 1", "n < 2 && t < n"] {
        assert!(!refused(&written_twice(other)), "{other}");
    }
    let handed_on = |written: &str, read: &str| {
        made(&format!(
            "program p(n: size, z: inout f32[8], y: out f32[8]) {{
               for b in block.x(n), w in threads(2@4) {{
                 if {written} {{ for e in threads(1@1) {{ for i in 0..4 {{ z[4*w + i] = 1 }} }} }}
                 if {read} {{ for i in threads(4@1) {{ y[4*w + i] = z[4*w + i] }} }}
               }}
             }}"
        ))
    };
    let refused = |text: &str| text.contains("split the thread loop between the two statements");
    for (written, read) in [("b < 4", "b < 4"), ("b < 4", "b < 4 && b < 2"), ("b < 4 && b < 2", "b < 4")] {
        assert!(refused(&handed_on(written, read)), "{written}, {read}");
    }
    // Blocks that write do not read.
    assert!(!refused(&handed_on("b < 4", "4 <= b")));
}

#[test]
fn a_wait_that_not_all_threads_share_is_refused() {
    let copy = "cp_async16_f32(s[4*t +: 4], x[4*t +: 4], 4)";
    let refused = placed(&format!(
        "alloc s: f32[256] shared
         for t in threads(64@1) {{ {copy} }}
         cp.commit
         for w in threads(2@32) {{
           cp.wait 0
           for l in threads(32@1) {{ y[32*w + l] = s[255 - 32*w - l] }}
         }}"
    ));
    assert!(refused.contains("no barrier orders after the wait"), "{refused}");
    let refused = placed(&format!(
        "alloc s: f32[256] shared
         for t in threads(64@1) {{ {copy} }}
         cp.commit
         if n < 5 {{ if n < 3 {{ cp.wait 0 }} for l in threads(64@1) {{ y[l] = s[255 - l] }} }}"
    ));
    assert!(refused.contains("no barrier orders after the wait"), "{refused}");
    // A copy that nobody has waited for is left to the checks: no barrier makes it arrive.
    let unwaited = format!(
        "alloc s: f32[256] shared
         for t in threads(64@1) {{ {copy} }}
         for l in threads(64@1) {{ y[l] = s[255 - l] }}"
    );
    expect(&unwaited, &unwaited);
}
