//! Which nests are instructions, and what else becomes of their operands.

use crate::ir::parse;
use crate::schedule::Schedule;

fn run(spec: &str, steps: &str) -> Result<String, String> {
    let spec = parse::program(spec).expect("the specification reads");
    Schedule::run(spec, steps).map(|s| s.program().to_string()).map_err(|e| e.to_string())
}

/// A block of two warps multiplies 32 x 16 tiles, each warp 16 x 16.
const WARP_TILE: &str = "program p(x: in bf16[32, 16], y: in bf16[16, 16], z: out f32[32, 16]) {
      for g in block.x(1) {
        alloc acc: f32[2@32, 16, 16] reg
        alloc xs: bf16[32, 16] shared
        alloc ys: bf16[16, 16] shared
        for w in threads(2@32) { for i in 0..16, j in 0..16 { acc[w, i, j] = 0 } }
        for t in threads(32@2) { for u in unroll 0..16 { xs[t, u] = x[t, u] } }
        for t in threads(16@4) { for u in unroll 0..16 { ys[t, u] = y[t, u] } }
        for w in threads(2@32) {
          alloc a: bf16[16, 16] reg
          alloc b: bf16[16, 16] reg
          for i in 0..16, k in 0..16 { a[i, k] = xs[16*w + i, k] }
          for k in 0..16, j in 0..16 { b[k, j] = ys[k, j] }
          for h in 0..2, i in 0..16, j in 0..8, k in 0..16 {
            acc[w, i, 8*h + j] += f32(b[k, 8*h + j]) * f32(a[i, k])
          }
        }
        for w in threads(2@32) { for i in 0..16, j in 0..16 { z[16*w + i, j] = acc[w, i, j] } }
      }
    }";

#[test]
fn a_warp_tile_becomes_matrix_instructions() {
    let text = run(WARP_TILE, "tensorize(acc.i, mma_m16n8k16_bf16)").unwrap();
    for wanted in [
        "alloc acc: f32[2@32, 2, 16, 8] reg frag D16x8",
        "for jo in 0..2 {\n        for (i, j) in own acc[w, jo, :, :] {\n          acc[w, jo, i, j] = 0",
        "for (i, k) in own a[:, :] {\n        a[i, k] = xs[16*w + i, k]",
        "for h in 0..2 {\n        mma_m16n8k16_bf16(acc[w, h, :, :], a[:, :], b[:, 8*h +: 8])",
        "for (i, j) in own acc[w, jo, :, :] {\n          z[16*w + i, 8*jo + j] = acc[w, jo, i, j]",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

#[test]
fn tiles_that_nobody_reads_are_left_out() {
    // Of three warps' 48 rows 20 are stored: the third has none of them.
    let three = WARP_TILE
        .replace("2@32", "3@32")
        .replace("xs: bf16[32, 16]", "xs: bf16[48, 16]")
        .replace("x: in bf16[32, 16]", "x: in bf16[48, 16]")
        .replace("threads(32@2)", "threads(48@2)")
        .replace("z: out f32[32, 16]", "z: inout f32[20, 16]");
    let store = |inner: &str| three.replace("{ z[16*w + i, j] = acc[w, i, j] }", inner);
    let guarded = store("{ if 16*w + i < 20 { z[16*w + i, j] = acc[w, i, j] } }");
    let omitting = |text: &str| run(text, "tensorize(acc.i, mma_m16n8k16_bf16, omit=unread)").unwrap();
    let found = omitting(&guarded);
    assert!(found.contains("if 16*w < 20 {\n          mma_m16n8k16_bf16(acc[w, h, :, :]"), "{found}");
    // Columns as well: of 16 in two tiles so many are stored.
    for (columns, tiles) in [(9, 0), (8, 1)] {
        let condition =
            format!("{{ if 16*w + i < 20 && j < {columns} {{ z[16*w + i, j] = acc[w, i, j] }} }}");
        let found = omitting(&store(&condition));
        assert_eq!(found.matches("8*h < 8").count(), tiles, "{found}");
    }
    // What is read without conditions, here too, is needed.
    let read_twice = guarded.replace(
        "z[16*w + i, j] = acc[w, i, j] } }",
        "z[16*w + i, j] = acc[w, i, j] } if acc0 { z[i, j] += acc[w, i, j] } }",
    );
    let read_twice = read_twice.replace("program p(x:", "program p(acc0: flag, x:");
    let plain = |text: &str| run(text, "tensorize(acc.i, mma_m16n8k16_bf16)").unwrap();
    assert_eq!(omitting(&read_twice), plain(&read_twice));
    assert_eq!(omitting(WARP_TILE), plain(WARP_TILE), "nothing stands over the end");
    assert!(run(WARP_TILE, "tensorize(acc.i, mma_m16n8k16_bf16, omit=all)").unwrap_err().contains("unread"));
}

#[test]
fn elements_at_one_place_in_several_tiles_have_one_owner() {
    let with = |sum: &str| {
        let text = WARP_TILE
            .replace("f32[2@32, 16, 16] reg", "f32[2@32, 2, 16, 16] reg")
            .replace(
                "{ for i in 0..16, j in 0..16 { acc[w, i, j] = 0",
                "{ for h in 0..2, i in 0..16, j in 0..16 { acc[w, h, i, j] = 0",
            )
            .replace(
                "for h in 0..2, i in 0..16, j in 0..8, k",
                "for h in 0..2, v in 0..2, i in 0..16, j in 0..8, k",
            )
            .replace(
                "acc[w, i, 8*h + j] += f32(b[k, 8*h + j])",
                "acc[w, v, i, 8*h + j] += f32(b[k, 8*h + j])",
            )
            .replace("= acc[w, i, j] }", &format!("= {sum} }}"));
        run(&text, "tensorize(acc.i, mma_m16n8k16_bf16)").unwrap()
    };
    let text = with("acc[w, 0, i, j] + acc[w, 1, i, j]");
    let wanted = "for (i, j) in own acc[w, 0, jo, :, :] {
          z[16*w + i, 8*jo + j] = acc[w, 0, jo, i, j] + acc[w, 1, jo, i, j]";
    assert!(text.contains(wanted), "{wanted}\n{text}");
    let text = with("acc[w, 0, i, j] + acc[w, 1, i, 15 - j]");
    assert!(!text.contains("own acc[w, 0"), "other places have other owners\n{text}");
}

/// Tiles of every second column: a thread stores two neighbours at once where there are as many.
#[test]
fn wide_accesses_stand_inside_loops_over_what_a_thread_owns() {
    let with = |store: &str| {
        let text =
            WARP_TILE.replace("{ for i in 0..16, j in 0..16 { z[16*w + i, j] = acc[w, i, j] } }", store);
        run(&text, "tensorize(acc.i, mma_m16n8k16_bf16)").unwrap()
    };
    let store = |z: &str| {
        format!(
            "{{ for i in 0..16, j in 0..8 {{ if 16*w + i < 20 {{ for v in vector 0..2 {{ {z} }} }} else {{ for u in unroll 0..2 {{ {z2} }} }} }} }}",
            z2 = z.replace('v', "u").replace(" = acc", " = 2*acc")
        )
    };
    let text = with(&store("z[16*w + i, 2*j + v] = acc[w, i, 8*v + j]"));
    for wanted in [
        "for (i, j) in own acc[w, 0, :, :] {
        if 16*w + i < 20 {
          for v in vector 0..2 {
            z[16*w + i, 2*j + v] = acc[w, v, i, j]",
        "for u in unroll 0..2 {
            z[16*w + i, 2*j + u] = 2 * acc[w, u, i, j]",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    // An element of another place in its tile has another owner.
    let text = with(&store("z[16*w + i, 2*j + v] = acc[w, i, 4*v + j]"));
    assert!(!text.contains("own acc[w, 0"), "{text}");
    let one_arm = store("z[16*w + i, 2*j + v] = acc[w, i, 8*v + j]")
        .replace("acc[w, i, 8*u + j]", "acc[w, i, 4*u + j]");
    let text = with(&one_arm);
    assert!(!text.contains("own acc[w, 0"), "{text}");
}

#[test]
fn the_two_parts_of_a_number_have_one_owner() {
    let with = |store: &str| {
        let text = WARP_TILE
            .replace("z: out f32[32, 16]", "z: out c64[32, 8]")
            .replace("for i in 0..16, j in 0..16 { z[16*w + i, j] = acc[w, i, j] }", store);
        run(&text, "tensorize(acc.i, mma_m16n8k16_bf16)").unwrap()
    };
    let text = with(
        "for i in 0..16, j in 0..8 { z[16*w + i, j] = c64(acc[w, i, 2*j]) + times_i(c64(acc[w, i, 2*j + 1])) }",
    );
    let wanted = "for (i, j by 2) in own acc[w, jo, :, :] {
          z[16*w + i, 4*jo + j/2] = c64(acc[w, jo, i, j]) + times_i(c64(acc[w, jo, i, j + 1]))";
    assert!(text.contains(wanted), "{wanted}\n{text}");
    // Those of two numbers, and parts of one from an odd place on, have several.
    for store in [
        "for i in 0..16, j in 0..8 { z[16*w + i, j] = c64(acc[w, i, 2*j]) + c64(acc[w, i, 14 - 2*j]) }",
        "for i in 0..16, j in 0..7 { z[16*w + i, j] = c64(acc[w, i, 2*j + 1]) + c64(acc[w, i, 2*j + 2]) }",
    ] {
        let text = with(store);
        assert!(!text.contains("by 2"), "{store}\n{text}");
    }
}

#[test]
fn loads_and_products_may_be_tensorized_in_any_order() {
    let loads = "tensorize(a.i, ldmatrix_x4)\ntensorize(b.k, ldmatrix_x4_trans)\n";
    let product = "tensorize(acc.i, mma_m16n8k16_bf16)\n";
    let first = run(WARP_TILE, &format!("{loads}{product}")).unwrap();
    assert_eq!(first, run(WARP_TILE, &format!("{product}{loads}")).unwrap());
    assert!(first.contains("ldmatrix_x4(a[:, :], xs[16*w +: 16, :])"), "{first}");
    assert!(first.contains("ldmatrix_x4_trans(b[:, :], ys[:, :])"), "{first}");
}

#[test]
fn what_is_another_thing_is_refused() {
    for (step, because) in [
        ("tensorize(acc.h, mma_m16n8k16_bf16)", "2, 8, 16, 16 iterations"),
        ("tensorize(acc.i, mma_m16n8k16_f16)", "its elements are bf16, not f16"),
        ("tensorize(a.i, mma_m16n8k16_bf16)", "its loops have 16, 16 iterations"),
        ("tensorize(xs.u, cp_async16)", "`xs.u` is not `cp_async16`"),
        ("tensorize(a.k, ldmatrix_x4)", "16 iterations"),
        ("tensorize(a.i, tma_load_sw128)", "via=tma"),
        ("tensorize(a.i, wgmma_bf16_sw128)", "no nest of these loops is what it does"),
        ("tensorize(a.i, ldmatrix_x5)", "there is no instruction `ldmatrix_x5`"),
        ("tensorize(q.i, ldmatrix_x4)", "nothing computes a buffer named `q`"),
        (
            "tensorize(a.i, ldmatrix_x4)\ntensorize(b.k, ldmatrix_x4)\ntensorize(acc.i, mma_m16n8k16_bf16)",
            "`b` is kept in fragments of `A16x16` already",
        ),
    ] {
        let refusal = run(WARP_TILE, step).unwrap_err();
        assert!(refusal.contains(because), "{step}: {refusal}");
    }
}

#[test]
fn the_condition_of_a_load_becomes_an_operand() {
    let copy = |load: &str| {
        format!(
            "program p(M: size, N: size, x: in f32[M, N; ldx]) assume ldx%4 == 0 {{
                   for b in block.x(M) {{
                     alloc s: f32[128, 4] shared
                     for t in threads(128@1) {{ for e in 0..4 {{ s[t, e] = {load} }} }}
                   }}
                 }}"
        )
    };
    let step = "tensorize(s.e, cp_async16_f32)";
    for (load, valid) in [
        ("4*t + e < N ? x[b, 4*t + e] : 0", "max(0, min(4, N - 4*t))"),
        ("4*t + e < N && t < 7 ? x[b, 4*t + e] : 0", "t < 7 ? max(0, min(4, N - 4*t)) : 0"),
        ("b < M ? x[b, 4*t + e] : 0", "4"),
        // Of pieces that are there as a whole or not at all, it is asked which.
        ("4*t + e < 60 ? x[b, 4*t + e] : 0", "0 < -4*t + 60 ? 4 : 0"),
        ("4*t + e < 62 ? x[b, 4*t + e] : 0", "max(0, min(4, -4*t + 62))"),
    ] {
        let text = run(&copy(load), step).unwrap();
        let wanted = format!("cp_async16_f32(s[t, :], x[b, 4*t +: 4], {valid})");
        assert!(text.contains(&wanted), "{wanted}\n{text}");
    }
    for (load, because) in [
        ("4*t + e < N ? x[b, 4*t + e] : 1", "another value"),
        ("4*t < N + e ? x[b, 4*t + e] : 0", "not that of the first elements"),
        ("4*t + e < N ? x[b, 4*t + e + 1] : 0", "multiple of 4"),
        ("4*t + e < N ? x[e, t] : 0", "`x` cannot be its operand `a`"),
    ] {
        let refusal = run(&copy(load), step).unwrap_err();
        assert!(refusal.contains(because), "{load}: {refusal}");
    }
}

#[test]
fn a_copy_moves_no_more_than_the_start_of_its_tensor_allows() {
    let copy = |piece: i64, dtype: &str, align: i64| {
        let spec = format!(
                "program p(x: in {dtype}[128] align {align}) {{
                   for b in block.x(1) {{
                     alloc s: {dtype}[128] shared
                     for t in threads({threads}@1) {{ for e in 0..{piece} {{ s[{piece}*t + e] = x[{piece}*t + e] }} }}
                   }}
                 }}",
                threads = 128 / piece
            );
        let bytes = if dtype == "f64" { 8 * piece } else { 4 * piece };
        run(&spec, &format!("tensorize(s.e, cp_async{bytes}_{dtype})"))
    };
    let refusal = copy(4, "f32", 8).unwrap_err();
    assert!(refusal.contains("`x` starts at a multiple of 8 bytes, not of 16"), "{refusal}");
    assert!(copy(2, "f32", 4).is_err() && copy(2, "f64", 8).is_err());
    for (piece, dtype, align) in [(4, "f32", 16), (2, "f32", 8), (1, "f32", 4), (1, "f64", 8)] {
        copy(piece, dtype, align).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn a_copy_of_one_element_needs_no_alignment_and_no_loop() {
    let program = "program p(M: size, x: in c64[M, 5; ldx]) {
            for b in block.x(M) {
              alloc s: c64[8, 5] shared
              for t in threads(40@1) { for e in 0..1 { s[t/5, t%5 + e] = b + t/5 < M ? x[b + t/5, t%5 + e] : 0 } }
            }
          }";
    let text = run(program, "tensorize(s.e, cp_async8_c64)").unwrap();
    assert!(
        text.contains("cp_async8_c64(s[t/5, t%5 +: 1], x[b + t/5, t%5 +: 1], b + t/5 < M ? 1 : 0)"),
        "{text}"
    );
}

#[test]
fn a_condition_that_is_the_same_for_all_elements_stands_around_the_instruction() {
    let program = |cond: &str| {
        format!(
            "program p(x: in f64[48, 2]) {{
                   for b in block.x(1) {{
                     alloc s: f64[48, 2] shared
                     for t in threads(64@1) {{ for e in 0..2 {{ if {cond} {{ s[t, e] = x[t, e] }} }} }}
                   }}
                 }}"
        )
    };
    let text = run(&program("t < 48"), "tensorize(s.e, cp_async16_f64)").unwrap();
    assert!(text.contains("if t < 48 {\n        cp_async16_f64(s[t, :], x[t, :], 2)"), "{text}");
    let refusal = run(&program("t + e < 48"), "tensorize(s.e, cp_async16_f64)").unwrap_err();
    assert!(refusal.contains("all or nothing"), "{refusal}");
}
