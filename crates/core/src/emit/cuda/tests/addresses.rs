//! What indices in shared memory and the loops around them look like.

use super::source;

#[test]
fn unrolled_loops_count_from_where_a_loop_stands() {
    let text = |inner: &str, at: &str| {
        source(&format!(
            "program rows(n: size, x: in f32[64, 32], y: out f32[32]) {{
                for b in block.x(1) {{
                    alloc s: f32[2048] shared
                    for t in threads(32@1) {{
                        for r in 0..64 {{ s[32*r + t] = x[r, t] }}
                    }}
                    for t in threads(32@1) {{
                        alloc acc: f32[1] reg
                        acc[0] = 0
                        for k in 0..8, u in {inner} {{ acc[0] += s[{at}] }}
                        y[t] = acc[0]
                    }}
                }}
            }}"
        ))
        .text
    };
    let far = text("unroll 0..4", "256*k + 64*u + t");
    assert!(far.contains("(&s[256*k + tid])[64*u]"), "{far}");
    // What no loop moves, and what none that is unrolled counts, is one sum.
    for (inner, at, whole) in [
        ("unroll 0..4", "64*u + t", "s[64*u + tid]"),
        ("0..4", "256*k + 64*u + t", "s[256*k + 64*u + tid]"),
        ("unroll 0..4", "256*k + t", "s[256*k + tid]"),
    ] {
        let found = text(inner, at);
        assert!(found.contains(whole), "{found}");
    }
}

#[test]
fn nobody_divides_for_an_element_of_rows_that_lie_densely() {
    let text = |width: i64, row: &str, column: &str| {
        source(&format!(
            "program rows(y: out f32[1504]) {{
                for b in block.x(1) {{
                    alloc s: f32[32, {width}] shared
                    for t in threads(32@1) {{
                        for c in 0..47 {{ s[t, c] = 1 }}
                    }}
                    for t in threads(32@1) {{
                        for u in 0..47 {{ y[32*u + t] = s[{row}, {column}] }}
                    }}
                }}
            }}"
        ))
        .text
    };
    let dense = text(47, "(32*u + t)/47", "(32*u + t)%47");
    assert!(dense.contains("(&s[0][0])[32*u + tid]"), "{dense}");
    // Rows with something between them, and others than those of the same element.
    for (width, row, column) in [
        (48, "(32*u + t)/47", "(32*u + t)%47"),
        (47, "(32*u + t)/47", "(32*u + t + 1)%47"),
        (47, "(32*u + t)/48", "(32*u + t)%47"),
        (47, "t", "(32*u + t)%47"),
    ] {
        let found = text(width, row, column);
        assert!(!found.contains("&s"), "{width}: {found}");
    }
}

#[test]
fn nobody_divides_for_an_element_of_a_tile_whose_place_in_it_is_known() {
    let text = |column: &str| {
        source(&format!(
            "program tiles(y: out f32[8, 52]) {{
                for b in block.x(1) {{
                    alloc s: f32[8, 52] shared layout (r, c) => 80*r + 20*(c/13) + c%13
                    for t in threads(52@1) {{
                        for r in 0..8 {{ s[r, t] = 1 }}
                    }}
                    for t in threads(4@1) {{
                        for r in 0..8, j in unroll 0..13 {{ y[r, 13*t + j] = s[r, {column}] }}
                    }}
                }}
            }}"
        ))
        .text
    };
    let inside = text("13*t + j");
    assert!(inside.contains("(&s[80*r + 20*tid])[j]"), "{inside}");
    let last = text("13*t + 12");
    assert!(last.contains("s[80*r + 20*tid + 12]"), "{last}");
    // Where an element may be in any tile, it is looked for.
    let anywhere = text("4*j + t");
    assert!(anywhere.contains("s[s_at(r, 4*j + tid)]"), "{anywhere}");
}

/// A warp reads a tile of 8 x 32 whose pieces of four change places, in one of three slots.
fn of_a_swizzled_tile(around: &str, at: &str) -> String {
    source(&format!(
        "program swizzled(x: in f32[8, 32], y: out f32[32]) {{
            for b in block.x(1) {{
                alloc s: f32[3, 8, 32] shared layout (p, r, c) => 256*p + 32*r + 4*xor(c/4, r%8) + c%4
                for t in threads(32@1) {{
                    for p in 0..3, r in 0..8 {{ s[p, r, t] = x[r, t] }}
                }}
                for t in threads(32@1) {{
                    alloc acc: f32[1] reg
                    acc[0] = 0
                    {around} {{ acc[0] += s[{at}] }}
                    y[t] = acc[0]
                }}
            }}
        }}"
    ))
    .text
}

#[test]
fn places_that_no_loop_moves_are_computed_before_it() {
    // What depends on the thread only.
    let fixed = of_a_swizzled_tile("for k in 0..6, u in unroll 0..2", "k%3, t/8 + 4, 4*(t%8) + u");
    assert!(fixed.contains("const int s_place = 32*(tid/8) + 4*(tid%8 ^ tid/8 + 4);"), "{fixed}");
    assert!(fixed.contains("(&s[s_place + 256*(k%3)])[u + 128]"), "{fixed}");
    // One for each iteration of an unrolled loop inside, and what that adds as it is.
    let each = of_a_swizzled_tile("for k in 0..6, u in unroll 0..8", "k%3, u, t");
    assert!(each.contains("int s_place[8];"), "{each}");
    assert!(each.contains("for (int u = 0; u < 8; ++u) s_place[u] = 4*(tid/4 ^ u) + tid%4;"), "{each}");
    assert!(each.contains("(&s[s_place[u] + 256*(k%3)])[32*u]"), "{each}");
    // Another loop beside it has a place of its own name.
    let twice = of_a_swizzled_tile(
        "for u in unroll 0..8 { acc[0] += s[1, u, t] } for k in 0..3 { acc[0] += s[k, t/8, t] } for k in 0..6, u in unroll 0..8",
        "k%3, u, t",
    );
    assert!(twice.contains("const int s_place = ") && twice.contains("int s_place2[8];"), "{twice}");
    let before = |text: &str, this: &str, that: &str| text.find(this).unwrap() < text.find(that).unwrap();
    assert!(before(&each, "s_place[u] = ", "for (int k = 0"), "{each}");
}

#[test]
fn places_that_a_loop_moves_are_computed_in_it() {
    // Pieces of another row in every iteration, a loop around that is unrolled, and one inside that is not.
    for (around, at) in [
        ("for k in 0..6, u in unroll 0..2", "u, k, t"),
        ("for k in unroll 0..6, u in unroll 0..2", "u, k, t"),
        ("for k in 0..2, u in 0..8", "k, u, t"),
    ] {
        let text = of_a_swizzled_tile(around, at);
        assert!(text.contains("s[s_at(") && !text.contains("s_place"), "{text}");
    }
}

/// Copies to two slots before a loop: by pointers and places where the pieces of rows change places, each by itself elsewhere.
#[test]
fn the_first_copies_to_swizzled_tiles_are_not_kept_waiting() {
    let text = |layout: &str| {
        source(&format!(
            "program copies(x: in f32[256, 32; ldx], y: out f32[8, 32]) assume ldx%4 == 0 {{
                for b in block.x(1) {{
                    alloc s: f32[2, 8, 32] shared{layout}
                    for p in unroll 0..2 {{
                        for t in threads(32@1) {{
                            for u in unroll 0..2 {{
                                cp_async16_f32(s[p, 4*u + t/8, 4*(t%8) +: 4], x[128*p + 4*u + t/8, 4*(t%8) +: 4], 4)
                            }}
                        }}
                        cp.commit
                    }}
                    cp.wait 0
                    barrier
                    for t in threads(32@1) {{ for r in 0..8 {{ y[r, t] = s[0, r, t] + s[1, r, t] }} }}
                }}
            }}"
        ))
        .text
    };
    let swizzled = text(" layout (p, r, c) => 256*p + 32*r + 4*xor(c/4, r%8) + c%4");
    for line in [
        "const float* x2 = &x[(long long)(tid/8)*ldx + 4*(tid%8)];",
        "s_place[u] = 32*(tid/8) + 4*(tid%8 ^ 4*u + tid/8);",
        "cp_async16(&(&s[s_place[u]])[256*p + 128*u], &x2[(long long)(4*u)*ldx]);",
        "x2 += 128ll*ldx;",
    ] {
        assert!(swizzled.contains(line), "{line}\n{swizzled}");
    }
    assert!(swizzled.find("s_place[u] = ") < swizzled.find("for (int p = 0"), "{swizzled}");
    let plain = text("");
    assert!(!plain.contains("const float* x2") && !plain.contains("s_place"), "{plain}");
}

#[test]
fn what_stands_in_for_an_unrolled_loop_stays_rolled() {
    let text = source(
        "program copy(n: size, x: in f32[n], y: out f32[n]) {
            for b in block.x(ceil(n, 128)) {
                for t in threads(32@1) {
                    if 128*b + t + 96 < n {
                        for u in unroll 0..4 { y[128*b + 32*u + t] = x[128*b + 32*u + t] }
                    } else {
                        for u in 0..4 { if 128*b + 32*u + t < n { y[128*b + 32*u + t] = x[128*b + 32*u + t] } }
                    }
                }
            }
        }",
    )
    .text;
    assert_eq!(text.matches("#pragma unroll\n").count(), 1, "{text}");
    assert_eq!(text.matches("#pragma unroll 1\n").count(), 1, "{text}");
    // A loop of its own is left to the compiler.
    let alone = source(
        "program sum(x: in f32[8, 32], y: out f32[32]) {
            for b in block.x(1) {
                for t in threads(32@1) {
                    alloc acc: f32[1] reg
                    acc[0] = 0
                    for k in 0..8 { acc[0] += x[k, t] }
                    y[t] = acc[0]
                }
            }
        }",
    )
    .text;
    assert!(!alone.contains("#pragma"), "{alone}");
}

#[test]
fn what_can_fail_in_the_last_iteration_only_is_asked_there() {
    let guarded = |pieces: i64, condition: &str| {
        source(&format!(
            "program copy(n: size, x: in f32[8, 64], y: out f32[8, 64]) {{
                for b in block.x(1) {{
                    for t in threads(64@1) {{
                        for u in unroll 0..{pieces} {{ if {condition} {{ y[u, t] = x[u, t] }} }}
                    }}
                }}
            }}"
        ))
        .text
    };
    let last = guarded(4, "64*u + t < 200");
    assert!(last.contains("if (u < 3 || tid < 8)"), "{last}");
    // In the last two it can fail: it is asked in each.
    let two = guarded(5, "64*u + t < 200");
    assert!(two.contains("if (64*u + tid < 200)") && !two.contains("u < 4"), "{two}");
    // Of what nobody knows when the kernel is compiled, no iteration is sure.
    let open = guarded(4, "64*u + t < n");
    assert!(open.contains("if (64*u + tid < n)"), "{open}");
}

#[test]
fn no_more_blocks_are_asked_for_than_fit_or_come() {
    let asked = |threads: i64, blocks: &str, min_blocks: &str| {
        let text = source(&format!(
            "program tile(n: size, x: in f32[{blocks}, 64, 1024], y: out f32[{blocks}, 64, 1024]) {{
                for b in block.x({blocks}){min_blocks} {{
                    for t in threads({threads}@1) {{
                        alloc acc: f32[64] reg
                        for i in unroll 0..64 {{ acc[i] = x[b, i, t] }}
                        for i in unroll 0..64 {{ y[b, i, t] = acc[i] }}
                    }}
                }}
            }}"
        ))
        .text;
        let at = text.find("__launch_bounds__").unwrap();
        text[at..].lines().next().unwrap().to_string()
    };
    let bounds = |threads, blocks| asked(threads, blocks, "");
    // 64 sums and 40 registers beside them: three blocks, 18 warps, would leave 112 of 65 536 for each thread, were it not that two
    // of four sub-partitions get five warps, which leaves 96.
    assert_eq!(bounds(192, "n"), "__launch_bounds__(192, 2)");
    assert_eq!(bounds(128, "n"), "__launch_bounds__(128, 4)");
    // One that comes is asked for: the assembler would keep room for more of its own accord. Of blocks nobody knows how many come.
    assert_eq!(bounds(128, "132"), "__launch_bounds__(128, 1)");
    assert_eq!(bounds(512, "n"), "__launch_bounds__(512)");
    assert_eq!(bounds(128, "396"), "__launch_bounds__(128, 3)");
    assert_eq!(bounds(128, "397"), "__launch_bounds__(128, 4)");
    // A program may ask for another number, or for nothing.
    assert_eq!(asked(128, "396", " min_blocks 2"), "__launch_bounds__(128, 2)");
    assert_eq!(asked(128, "396", " min_blocks 0"), "__launch_bounds__(128)");
}

#[test]
fn a_lane_counts_from_its_base_where_a_loop_has_one() {
    let text = |base: &str, at: &str| {
        source(&format!(
            "program rows(x: in f64[512], y: out f64[16, 8]) {{
                for b in block.x(1) {{
                    alloc s: f64[4, 128] shared
                    for t in threads(32@1) {{
                        for r in 0..16 {{ s[r/4, 32*(r%4) + t] = x[32*r + t] }}
                    }}
                    for w in threads(1@32) {{
                        alloc acc: f64[2, 8, 8] reg frag D8x8
                        for k in 0..2 {{
                            for u in unroll 0..2 {{
                                for (i, j) in own acc[u, :, :] {base} {{ acc[u, i, j] = s[{at}] }}
                            }}
                        }}
                        for u in unroll 0..2 {{
                            for (i, j) in own acc[u, :, :] {{ y[8*u + i, j] = acc[u, i, j] }}
                        }}
                    }}
                }}
            }}"
        ))
        .text
    };
    // A lane has two neighbours of a row: what it adds up for each of them and each iteration is a constant.
    for (base, at, wanted) in [
        ("lane_base", "k, 64*u + 8*i + j", "(&s[k][2*tid])[64*u + r]"),
        // Over all dimensions, constants among it.
        ("lane_base", "2*k + u, 8*i + j", "(&s[2*k][2*tid])[128*u + r]"),
        ("lane_base", "2*k + 1 - u, 8*i + j + 3", "(&s[2*k][2*tid])[r - 128*u + 131]"),
        ("", "k, 64*u + 8*i + j", "s[k][64*u + 8*i + j]"),
    ] {
        let found = text(base, at);
        assert!(found.contains(&format!("acc[u][r] = {wanted};")), "{found}");
    }
}
