//! Fitting a target.

use super::{FINISHED, assert_fault, checked, edited, text};
use crate::diag::Diagnosis;
use crate::ir::validate::{Valid, validate};
use crate::target::Target;

fn valid_on(text: &str, gpu: &str) -> Result<Valid, Vec<Diagnosis>> {
    let target = Target::by_name(gpu).expect("is in the table");
    let program = checked(text).unwrap_or_else(|faults| panic!("{}\n{text}", said(&faults)));
    validate(program, target)
}

fn said(faults: &[Diagnosis]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_finished_program_fits_a_gpu_that_has_what_it_needs() {
    for name in FINISHED {
        if let Err(faults) = valid_on(&text(name), "h200") {
            panic!("{name}:\n{}", said(&faults));
        }
    }
}

/// Asserts that `text` runs in order and does not fit the GPU, by a fault that mentions every one of `words`.
fn unfit_on(text: &str, gpu: &str, words: &[&str]) {
    match valid_on(text, gpu) {
        Ok(_) => panic!("accepted, but should be refused for {words:?}:\n{text}"),
        Err(faults) => assert_fault(&faults, words),
    }
}

fn unfit(text: &str, words: &[&str]) {
    unfit_on(text, "h200", words);
}

/// A launch of one block loop with some buffers around `body`.
fn launch(body: &str) -> String {
    format!(
        "program p(n: size, G: launch, x: in f32[n, n; ldx], y: out f32[n], z: inout f64[n], h: inout f16[n]) {{
           for b in block.x(G) {{ {body} }} }}"
    )
}

#[test]
fn pictures_fit_or_say_why_not() {
    for name in ["roles_inside", "thread_loop_split", "thread_loop_not_split", "tiling_1_bound"] {
        if let Err(faults) = valid_on(&text(&format!("pictures/{name}")), "h200") {
            panic!("{name}:\n{}", said(&faults));
        }
    }
    unfit(
        &text("pictures/tiling_0_specification"),
        &["the loop `i` runs on the host", "bind the outer loops"],
    );
    unfit(&text("pictures/tiling_2_staged"), &["256 threads execute one element statement", "AA[r, c] = "]);
    let warp = text("pictures/warp_tile_before_tensorize");
    unfit(&warp, &["32 threads execute one element statement", "acc[wm, i, j] = 0"]);
    unfit(&warp, &["nobody owns the elements of `a`", "allocated for 32 threads"]);
}

#[test]
fn only_launches_run_and_they_fit() {
    unfit("program p(y: out f32[1]) { y[0] = 1 }", &["this runs on the host", "block.x(1)"]);
    unfit("program p(y: out f32[1]) { alloc s: f32[1] reg }", &["`s` is allocated outside any launch"]);
    unfit(
        &launch("for c in block.y(2), t in threads(1@1) { y[b] = 1 } y[0] = 1"),
        &["counted inside a block"],
    );
    unfit(
        &launch("for u in interleave 0..2 { for t in threads(1@1) { y[b] = 1 } }"),
        &["virtual threads", "still there"],
    );
    unfit(
        &launch("for t in threads(1@1) { for i in unroll 0..n { y[b] = 1 } }"),
        &["`i` cannot be unrolled"],
    );
    unfit(&launch("for t in threads(1025@1) { y[b] = 1 }"), &["a block has 1056 threads", "at most 1024"]);
    let big = edited("hgemm_cp_async", "bf16[3, 128, 32]", "bf16[28, 128, 32]");
    unfit(&big, &["bytes of shared memory, 229376 of them for `As`", "fewer stages"]);
    let twice = edited("hgemm_cp_async", "by in block.y(", "by in block.x(");
    unfit(&twice, &["two block loops run along x"]);
    let triangle = "program p(n: size, y: out f32[n, n]) { for i in block.y(n), j in block.x(i) { for t in threads(1@1) { y[i, j] = 1 } } }";
    unfit(triangle, &["the number of blocks of `j` depends on `i`", "a grid is a box"]);
}

#[test]
fn targets_lack_features() {
    unfit_on(&text("hgemm_cp_async"), "v100-sxm2", &["ldmatrix_x4 does not exist", "Ldmatrix", "a100-40gb"]);
    unfit_on(&text("hgemm_cp_async"), "rtx2080ti", &["cp.async does not exist", "CpAsync"]);
    unfit_on(&text("hgemm_tma_wgmma"), "a100-80gb", &["tma_load_sw128 does not exist"]);
    unfit_on(&text("hgemm_tma_wgmma"), "a100-80gb", &["`regs 40` does not exist"]);
    unfit_on(&text("hgemm_tma_wgmma"), "b200", &["wgmma_bf16_sw128 does not exist on NVIDIA B200"]);
    unfit_on(&text("tsmttsm_atomic"), "gtx980", &["an atomic sum of f64 does not exist"]);
    let complex = text("tsmttsm_atomic").replace("f64", "c128");
    unfit_on(&complex, "gtx980", &["an atomic sum of c128 does not exist"]);
    assert!(valid_on(&complex, "h200").is_ok(), "a complex number is added as its two parts");
    unfit(&launch("for t in threads(1@1) { atomic h[b] += 1 }"), &["an atomic sum of f16 exists on no GPU"]);
    unfit(
        &launch("for t in threads(1@1) { atomic z[b] max= 1 }"),
        &["an atomic maximum of f64 exists on no GPU"],
    );
    unfit_on(&launch("for t in threads(1@1) { h[b] = h[b] * h[b] }"), "gtx980", &["arithmetic in f16"]);
}

#[test]
fn roles_are_whole_warps_with_registers_that_exist() {
    let change = |new: &str| edited("hgemm_tma_wgmma", "producer 0..128 regs 40", new);
    unfit(&change("producer 0..120 regs 40"), &["role `producer` cuts through a warp"]);
    unfit(&change("producer 0..96 regs 40"), &["sets 40 registers for 96 threads", "whole warpgroups"]);
    unfit(&change("producer 0..128 regs 42"), &["sets 42 registers", "steps of 8"]);
    unfit(&change("producer 0..128 regs 240"), &["the roles set 90112 registers in all", "65536"]);
}

#[test]
fn each_statement_stands_at_the_threads_that_execute_it() {
    unfit(
        &launch("y[b] = 1 for t in threads(64@1) { z[t] = 1 }"),
        &["64 threads execute one element statement"],
    );
    unfit(
        &edited(
            "sgemm_block_tiling",
            "for r in threads(2@128), c in threads(128@1)",
            "for r in threads(2@128), c in threads(129@1)",
        ),
        &["`c` asks for 129 ranges of 1 threads", "128 threads execute the loop"],
    );
    unfit(
        &edited(
            "hgemm_cp_async",
            "wm in threads(2@64), wn in threads(2@32) {\n        for ks",
            "wm in threads(2@64), wn in threads(1@64) {\n        for ks",
        ),
        &["64 threads execute ldmatrix_x4", "exactly 32"],
    );
    let barrier = launch("alloc s: f32[64] shared for t in threads(64@1) { s[t] = 0 barrier y[t] = s[t] }");
    unfit(&barrier, &["1 threads stand at barrier", "whole warps", "end the thread loops before it"]);
    unfit(&launch("for w in threads(2@48) { barrier }"), &["48 threads stand at barrier"]);
    unfit(
        &launch("for w in threads(2@48) { for v in threads(1@32) { barrier } }"),
        &["32 threads stand at barrier"],
    );
    unfit(
        &edited("hgemm_tma_wgmma", "wgmma.commit", "for v in threads(4@32) { wgmma.commit }"),
        &["32 threads stand at wgmma.commit", "whole warpgroups"],
    );
    unfit(
        &launch("for w in threads(2@32) { alloc s: f32[4] shared }"),
        &["`s` is shared and allocated by 32 threads"],
    );
    unfit(
        &launch("for w in threads(2@32) { alloc r: mbar ring 2 count 1 }"),
        &["a ring of mbarriers is shared"],
    );
    let store = "acc[wm, wn, mi, ni, i, j] = 0";
    let own = edited("hgemm_cp_async", store, &format!("{store} barrier"));
    unfit(&own, &["inside a loop over owned elements", "close the `own` loop"]);
}

#[test]
fn registers_have_owners() {
    let alloc = "alloc acc: f32[16@16, 16@1, 8, 8] reg";
    let change = |new: &str| edited("sgemm_block_tiling", alloc, new);
    unfit(
        &change("alloc acc: f32[16@1, 16@16, 8, 8] reg"),
        &["thread 16*ty + tx touches acc[ty, tx, i, j]", "lives in thread 16*tx + ty"],
    );
    unfit(&change("alloc acc: f32[16@16, 16@8, 8, 8] reg"), &["elements of `acc` share a register"]);
    unfit(
        &change("alloc acc: f32[16@16, 16, 8, 8] reg"),
        &["which register of `acc` is meant depends on `tx`"],
    );
    unfit(
        &change("alloc acc: f32[16@32, 16@1, 8, 8] reg"),
        &["`acc` is spread over 496 threads", "256 threads stand here"],
    );
    unfit(&change("alloc acc: f32[16@16, 16@1, 8, 7] reg"), &["index j of `acc` may lie outside 0..7"]);
    unfit(&change("alloc acc: f32[16, 16, 8, 8] reg"), &["nobody owns the elements of `acc`"]);
    unfit(
        &edited("sgemm_block_tiling", "acc[ty, tx, i, j] += ra[i]", "acc[ty, tx, i, j] += ra[ty%8]"),
        &["which register of `ra` is meant depends on `ty`", "registers have no addresses"],
    );
    let symbolic = launch(
        "for t in threads(32@1) { alloc r: f32[8] reg for i in 0..8 { r[i] = 0 } for k in 0..n { y[k] = r[k%8] } }",
    );
    unfit(&symbolic, &["which register of `r` is meant depends on `k`"]);
    unfit(
        &edited("reduce_two_pass", "s[w] = v[w, e]", "s[w] = v[w, 5]"),
        &["thread 32*w + e touches v[w, 5]", "lives in thread 32*w + 5"],
    );
    let from_t =
        launch("for t in threads(8@1) { alloc r: f32[16] reg for i in unroll t..t + 8 { r[i] = 0 } }");
    unfit(&from_t, &["which register of `r` is meant depends on `i`"]);
    // Only the chosen arm is read.
    let chosen = launch(
        "for t in threads(8@1) { alloc r: f32[4] reg for i in unroll 0..4 { r[i] = 1 <= i ? r[i - 1] : 0 } }",
    );
    valid_on(&chosen, "h200").map_err(|f| said(&f)).expect("i - 1 is no register of 0");
    unfit(&chosen.replace("1 <= i", "0 <= n"), &["index i - 1 of `r` may lie outside 0..4"]);
    // Lane 0 of the warp under a guard is lane 0, whatever the loop says.
    let guarded = edited(
        "reduce_two_pass",
        "for w in threads(8@32), e in threads(1@1) {\n      s[w] = v[w, e]",
        "for w in threads(8@32), e in threads(32@1) {\n      if e == 0 { s[w] = v[w, 0] }",
    );
    valid_on(&guarded, "h200").map_err(|f| said(&f)).expect("guarded");
}

#[test]
fn fragments_are_touched_by_own_loops_and_instructions() {
    let element = edited(
        "hgemm_cp_async",
        "        for (i, j) in own acc[wm, wn, mi, ni, :, :] {\n          acc[wm, wn, mi, ni, i, j] = 0\n        }",
        "        for e in threads(1@1) { acc[wm, wn, mi, ni, 0, 0] = 0 }",
    );
    unfit(&element, &["an element of `acc` is touched outside an `own` loop", "fragment D16x8"]);
    unfit(
        &edited("hgemm_cp_async", "acc[wm, wn, mi, ni, i, j] = 0", "acc[wm, wn, mi, ni, i, 7 - j] = 0"),
        &["touches acc[wm, wn, mi, ni, i, -j + 7]", "and its fragment"],
    );
    let alone = "acc[wm, wn, mi, ni, i, j] = 0 alloc r: f32[2] reg for q in unroll 0..2 { r[q] = 0 } \
                 for q in unroll 0..2 { acc[wm, wn, mi, ni, i, j] += r[q] }";
    let temporary = edited("hgemm_cp_async", "acc[wm, wn, mi, ni, i, j] = 0", alone);
    valid_on(&temporary, "h200").map_err(|f| said(&f)).expect("each owner has registers of its own");
    // Moving by whole registers of a thread keeps the owner: columns 8 apart have the same place in the quad.
    let swapped = edited("hgemm_tma_wgmma", "acc[w, i, j] = 0", "acc[w, i, (j + 8)%128] = 0");
    valid_on(&swapped, "h200").map_err(|f| said(&f)).expect("the owner is the same");
    unfit(
        &edited("hgemm_tma_wgmma", "acc[w, i, j] = 0", "acc[1 - w, i, j] = 0"),
        &["lives in thread -128*w + 256", "acc[-w + 1, i, j]"],
    );
    unfit(
        &edited(
            "hgemm_tma_wgmma",
            "in own acc[w, :, :] {\n            acc[w, i, j] = 0",
            "in own acc[0, :, :] {\n            acc[0, i, j] = 0",
        ),
        &["not all owners of the window of `acc` stand here"],
    );
}

#[test]
fn a_run_is_touched_by_its_owner() {
    let by = |run: i64, column: &str| {
        let stored = format!("for v in unroll 0..2 {{ z[64*b + 8*i + j + v] = acc[i, {column}] }}");
        launch(&format!(
            "for w in threads(1@32) {{ alloc acc: f64[8, 8] reg frag D8x8
               for (i, j) in own acc[:, :] {{ acc[i, j] = 0 }}
               if 64*b + 64 <= n {{ for (i, j by {run}) in own acc[:, :] {{ {stored} }} }} }}"
        ))
    };
    valid_on(&by(2, "j + v"), "h200").map_err(|f| said(&f)).expect("pairs have one owner");
    unfit(&by(2, "j + 2*v"), &["index 2*v + j of `acc` may lie outside 0..8"]);
    unfit(&by(2, "j - v"), &["index j - v of `acc` may lie outside 0..8"]);
    unfit(&by(2, "(j + 2*v)%8"), &["touches acc[i, (2*v + j)%8]", "and its fragment"]);
    unfit(&by(1, "(j + v)%8"), &["touches acc[i, (j + v)%8]", "and its fragment"]);
    let pairs = by(2, "j + v").replace("in unroll", "in vector");
    valid_on(&pairs, "h200").map_err(|f| said(&f)).expect("pairs begin at multiples of two");
    unfit(
        &pairs.replace("8*i + j + v", "8*i + j + v + 1"),
        &["column 64*b + 8*i + j + 1 of `z` may not be a multiple of 2"],
    );
}

#[test]
fn operands_have_the_layout_of_the_record() {
    let cp = |old: &str, new: &str, words: &[&str]| unfit(&edited("hgemm_cp_async", old, new), words);
    cp(
        "alloc a: bf16[4, 16, 16] reg frag A16x16",
        "alloc a: bf16[4, 16, 16] reg frag B16x16",
        &["operand d of ldmatrix_x4: `a` has fragment B16x16", "by fragment A16x16"],
    );
    cp(
        "b[nj, :, 8*h +: 8])",
        "b[nj, :, 4*h +: 8])",
        &["operand b of mma_m16n8k16_bf16: the window cuts through the tile of `b`"],
    );
    cp(
        "ldmatrix_x4(a[mi, :, :], As[ko%3, 64*wm + 16*mi +: 16, 16*ks +: 16])",
        "ldmatrix_x4(a[mi, :, :], As[ko%3, 64*wm + 16*mi +: 16, 12*ks +: 16])",
        &["column 12*ks of `As` may not be a multiple of 8"],
    );
    cp(
        "8*xor(c/8, (r/2)%4) + c%8",
        "8*xor(c/8, (r/2)%4) + xor(c%8, 1)",
        &["rows of 8 elements of `As` are not contiguous"],
    );
    cp(
        "4096*s + 32*r + 8*xor(c/8, (r/2)%4) + c%8",
        "4224*s + 33*r + c",
        &["rows of 8 elements of `As` are not contiguous, or not aligned"],
    );
    cp("xor(c/8, (r/2)%4)", "xor(c/8, (r/2)%5)", &["not injective"]);
    cp(
        "assume lda%8 == 0, ldb%8 == 0",
        "assume lda%4 == 0, ldb%8 == 0",
        &["operand a of cp_async16: rows of `A` may not start at multiples of 8", "assume lda%8 == 0"],
    );
    cp(
        "B: in bf16[K, N; ldb]",
        "B: in bf16[K, N; ldb] align 4",
        &["operand a of cp_async16: `B` may not start at a multiple of 16 bytes"],
    );
    cp(
        "B[32*p + 8*u + r, 128*bx + 8*c +: 8]",
        "B[32*p + 8*u + r, 128*bx + 8*c + 4 +: 8]",
        &["column 128*bx + 8*c + 4 of `B` may not be a multiple of 8"],
    );
    cp("a[mi, :, :], b[nj", "a[mi, :, :], b[ko%4", &["which register of `b` is meant depends on `ko`"]);
    cp(
        "for mi in unroll 0..4, nj in unroll 0..4, h",
        "for mi in unroll 0..4, nj in 0..4, h",
        &["depends on `nj`", "unroll the loop over `nj`"],
    );
    cp(
        "mma_m16n8k16_bf16(acc[wm, wn,",
        "mma_m16n8k16_bf16(acc[wn, wm,",
        &[
            "operand d of mma_m16n8k16_bf16: the operand in `acc` lives from thread 64*wn + 32*wm on",
            "from 64*wm + 32*wn on",
        ],
    );
}

#[test]
fn boxes_are_whole_matrices_from_multiples_of_128_bytes() {
    let rows = |old: &str, new: &str| {
        let text = "program p(K: size, A: in c128[K, 9; lda], y: out c128[32]) {
          for b in block.x(1) {
            alloc s: c128[2, 8, 10] shared layout (p, r, c) => 80*p + 10*r + c
            alloc full: mbar ring 2 count 1
            for k in 0..ceil(K, 8) {
              for e in threads(1@1) {
                tma_load_c128(s[k%2, :, :], A[8*k +: 8, 0 +: 10]) -> full[k]
                arrive(full[k], tx 1280)
              }
              await(full[k])
            }
          }
        }";
        assert!(text.contains(old), "{old}");
        text.replace(old, new)
    };
    valid_on(&rows("", ""), "h200").map_err(|f| said(&f)).expect("a box of rows");
    unfit_on(&rows("", ""), "a100-80gb", &["tma_load_c128 does not exist"]);
    for (old, new, words) in [
        ("80*p + 10*r + c", "96*p + 11*r + c", "its rows do not follow each other"),
        ("80*p + 10*r + c", "84*p + 10*r + c", "it may not start at a multiple of 128 bytes"),
        ("s[k%2, :, :], A[8*k +: 8,", "s[k%2, 0 +: 4, :], A[8*k +: 4,", "it is filled as a whole"),
    ] {
        unfit(&rows(old, new), &[words]);
    }
    // Rows of single numbers begin anywhere, unless somebody promises that they do not.
    let single =
        rows("c128[2, 8, 10]", "f32[2, 8, 32]").replace("c128", "f32").replace("80*p + 10*r", "256*p + 32*r");
    let single = single.replace("0 +: 10", "0 +: 32").replace("tx 1280", "tx 1024");
    unfit(&single, &["rows of `A` may not start at multiples of 4 elements"]);
    let promised = single.replace("y: out f32[32])", "y: out f32[32]) assume lda%4 == 0");
    valid_on(&promised, "h200").map_err(|f| said(&f)).expect("rows that begin where a box wants them");
    let anywhere = promised.replace("9; lda]", "9; lda] align 4");
    unfit(&anywhere, &["`A` may not start at a multiple of 16 bytes"]);
    // A row of a box has 256 numbers at most.
    let wide = promised
        .replace("32]", "260]")
        .replace("0 +: 32", "0 +: 260")
        .replace("256*p + 32*r", "2080*p + 260*r");
    assert!(checked(&wide.replace("tx 1024", "tx 8320")).is_err(), "{wide}");
}

#[test]
fn swizzles_are_compared_with_the_instruction() {
    let tma = |old: &str, new: &str, words: &[&str]| unfit(&edited("hgemm_tma_wgmma", old, new), words);
    let layout = "8192*s + 64*r + 8*xor(c/8, r%8) + c%8";
    tma(
        layout,
        "8192*s + 64*r + c",
        &["the layout of `As` is not the 128-byte swizzle", "operand d of tma_load_sw128"],
    );
    tma(
        layout,
        "8192*s + 64*r + 8*xor(c/8, r%4) + c%8",
        &["the layout of `As` is not the 128-byte swizzle", "element [0, 4, 0] lies at offset 256"],
    );
    tma(
        &format!(" layout (s, r, c) => {layout}"),
        "",
        &["the layout of `As` is not the 128-byte swizzle", "its rows follow each other"],
    );
    tma(layout, "8200*s + 64*r + 8*xor(c/8, r%8) + c%8", &["the layout of `As` is not the 128-byte swizzle"]);
    // The same map in other words is the same map.
    let other = edited("hgemm_tma_wgmma", layout, "8192*s + 512*(r/8) + 64*(r%8) + 8*xor(r%8, c/8) + c%8");
    valid_on(&other, "h200").map_err(|f| said(&f)).expect("the same swizzle");
    tma("As[n%4, 64*w +: 64,", "As[n%4, 4*w +: 64,", &["row 4*w may not be a multiple of 8"]);
    tma(
        "As[n%4, 64*w +: 64, 16*ks +: 16]",
        "As[n%4, 64*w +: 64, 12*ks +: 16]",
        &["column 12*ks of `As` may not be a multiple of 8"],
    );
    tma(
        "ldc%8 == 0",
        "ldc%4 == 0",
        &["operand d of tma_store_sw128: rows of `C` may not start at multiples of 8"],
    );
}

#[test]
fn vector_loops_are_contiguous_and_aligned() {
    let vt = |old: &str, new: &str, words: &[&str]| unfit(&edited("sgemm_virtual_threads", old, new), words);
    vt(
        "assume lda%4 == 0, ldb%4 == 0",
        "assume lda%2 == 0, ldb%4 == 0",
        &["rows of `A` may not start at multiples of 4", "assume lda%4 == 0"],
    );
    vt(
        "A: in f32[K, N; lda]",
        "A: in f32[K, N; lda] align 8",
        &["`A` may not start at a multiple of 16 bytes", "declared to start at one of 8"],
    );
    vt(
        "AL[tyz, v] = AA[ki, 64*tyz + 4*ty + v]",
        "AL[tyz, v] = AA[ki, 64*tyz + 2*ty + v]",
        &["column 64*tyz + 2*ty of `AA` may not be a multiple of 4"],
    );
    vt(
        "AL[tyz, v] = AA[ki, 64*tyz + 4*ty + v]",
        "AL[tyz, v] = AA[ki, 64*tyz + 4*ty + 2*v]",
        &["no access moves to the next element with `v`"],
    );
    vt(
        "alloc AA: f32[16, 128] shared",
        "alloc AA: f32[16, 129] shared",
        &["4 neighbours of `AA` are not contiguous, or not aligned"],
    );
    vt(
        "alloc AA: f32[16, 128] shared",
        "alloc AA: f32[16, 128] shared layout (r, c) => 128*r + xor(c, r%2)",
        &["no access moves to the next element with `v`"],
    );
    // Rows that follow each other are neighbours across their ends, and are moved so.
    let across = |to: &str, start: &str| {
        format!(
            "program p(y: out f64[74]) {{ for b in block.x(1) {{
               alloc s: f64[2, 37] shared
               for t in threads(32@1) {{ for u in unroll 0..2 {{ s[(2*t + u)/37, (2*t + u)%37] = 1 }} }}
               barrier
               for t in threads(32@1) {{
                 for v in vector 0..2 {{ y[2*t + v{to}] = s[(2*t + v{start})/37, (2*t + v{start})%37] }}
               }} }} }}"
        )
    };
    valid_on(&across("", ""), "h200").unwrap_or_else(|faults| panic!("{faults:?}"));
    // Those of shared memory that are known to start behind a multiple are read one by one; others have to be moved at once.
    valid_on(&across("", " + 1"), "h200").unwrap_or_else(|faults| panic!("{faults:?}"));
    unfit(&across(" + 1", ""), &["column 2*t + 1 of `y` may not be a multiple of 2"]);
    unfit(&across(" + 1", " + 1"), &["column 2*t + 1 of `y` may not be a multiple of 2"]);
    unfit(&across("", " + t"), &["offset 3*t of `s` may not be a multiple of 2"]);
    // Read as a row, stored as a column.
    let column =
        edited("sgemm_virtual_threads", "AA[ty, 64*u + 4*tx + v] = A", "AA[4*u + v, 16*ty%128 + tx] = A");
    valid_on(&column, "h200").map_err(|f| said(&f)).expect("one side moves neighbours");
    let swizzled = edited(
        "sgemm_virtual_threads",
        "alloc AA: f32[16, 128] shared",
        "alloc AA: f32[16, 128] shared layout (r, c) => 128*r + 4*xor(c/4, r%8) + c%4",
    );
    valid_on(&swizzled, "h200").map_err(|f| said(&f)).expect("whole pieces move");
    let wide =
        edited("sgemm_virtual_threads", "f32[16, 128] shared", "f64[16, 128] shared").replace("f32[", "f64[");
    unfit(&wide, &["4 elements of `AA` are 32 bytes", "4, 8 or 16"]);
}

#[test]
fn phases_and_groups_add_up() {
    let tma = |old: &str, new: &str, words: &[&str]| unfit(&edited("hgemm_tma_wgmma", old, new), words);
    tma("ring 4 count 2", "ring 4 count 1", &["phase n - 1 of `empty` gets 2 arrivals", "the ring counts 1"]);
    tma("ring 4 count 1", "ring 4 count 2", &["phase n of `full` gets 1 arrivals", "the ring counts 2"]);
    tma(
        "tx 32768",
        "tx 16384",
        &["phase n of `full` expects 16384 bytes", "32768 bytes are copied in its name"],
    );
    tma(", tx 32768", "", &["phase n of `full` expects 0 bytes", "arrive with tx 32768"]);
    tma(
        "for e in threads(1@1) {\n            if 4",
        "for e in threads(2@1) {\n            if 4",
        &["phase n of `full` gets 2 arrivals"],
    );
    let inside =
        |old: &str, new: &str, words: &[&str]| unfit(&edited("pictures/roles_inside", old, new), words);
    inside("arrive(empty[p])", "await(full[p])", &["nobody arrives at `empty`"]);
    inside(
        "arrive(full[p])",
        "arrive(full[p], tx 128)",
        &["phase p of `full` expects bytes", "no copy reports to it"],
    );
    let cp = |old: &str, words: &[&str]| unfit(&text("hgemm_cp_async").replace(old, ""), words);
    cp("cp.commit\n", &["there is no cp.commit in the launch", "cp_async16("]);
    cp("cp.wait 1\n", &["there is no cp.wait n in the launch"]);
    tma("wgmma.fence", "", &["there is no wgmma.fence in the launch"]);
    tma("bulk.commit", "", &["there is no bulk.commit in the launch"]);
    unfit(&edited("hgemm_cp_async", "cp.wait 1", "cp.wait 9"), &["cp.wait 9 leaves 9 groups in flight"]);
    unfit(
        &text("hgemm_cp_async").replace("cp.commit", "for e in threads(1@1) { cp.commit }"),
        &["128 threads issue this, and 1 execute cp.commit"],
    );
}

#[test]
fn chained_instructions_need_ordered_blocks() {
    let scan = |old: &str, new: &str, words: &[&str]| unfit(&edited("scan_look_back", old, new), words);
    scan(" ordered", "", &["chained_sum waits for earlier blocks", "block.x(...) ordered"]);
    scan(
        "chain[b]",
        "chain[0]",
        &["the link of chained_sum in `chain` is not this block's own", "write chain[b]"],
    );
    scan(
        "for b in block.x(ceil(n, 1024)) ordered {",
        "for g in block.y(1), b in block.x(ceil(n, 1024)) ordered {",
        &["a launch of 2 block loops"],
    );
}

#[test]
fn blocks_keep_apart_or_the_question_stays_open() {
    for name in FINISHED {
        let valid = valid_on(&text(name), "h200").expect("fits");
        assert!(valid.open_questions().is_empty(), "{name}: {}", said(valid.open_questions()));
    }
    unfit(
        &edited("reduce_two_pass", "part[b] = u[e]", "part[0] = u[e]"),
        &["different blocks of `b` touch the same element of `part`", "not atomic"],
    );
    let plain = text("tsmttsm_atomic").replace("atomic C[", "C[");
    unfit(&plain, &["different blocks of `b` touch the same element of `C`", "reduce atomically"]);
    let overlap = edited("sgemm_block_tiling", "let m = 128*by + 8*ty + i", "let m = 127*by + 8*ty + i");
    let valid = valid_on(&overlap, "h200").expect("cannot be told from the indices alone");
    assert_fault(
        valid.open_questions(),
        &["different blocks of `by` may touch the same element of `C`", "in the simulator"],
    );
}

#[test]
fn determinism_is_read_off_the_text() {
    use crate::ir::validate::{is_deterministic, nondeterminism};
    let reason =
        |text: &str| nondeterminism(checked(text).expect("runs in order").program()).map(|d| d.to_string());
    for name in FINISHED {
        let program = checked(&text(name)).expect("runs in order");
        let expected = !matches!(name, "tsmttsm_atomic" | "scan_look_back");
        assert_eq!(is_deterministic(program.program()), expected, "{name}: {:?}", reason(&text(name)));
    }
    assert!(
        reason(&text("tsmttsm_atomic"))
            .is_some_and(|r| r.contains("`acc` sums up a share that depends on the size of the launch"))
    );
    assert!(reason(&text("scan_look_back")).is_some_and(|r| r.contains("association depends on timing")));
    let fixed = text("tsmttsm_atomic").replace("G", "8").replace("8: launch, ", "");
    assert!(reason(&fixed).is_some_and(|r| r.contains("floating-point atomics")), "{:?}", reason(&fixed));
    let outside =
        edited("hgemm_tma_wgmma", "            acc[w, i, j] = 0", "            Cs[w, 0, i, j%64] = 0");
    let before = outside.replacen("    for (tm, tn)", "    on consumer { for w in threads(2@128) { for (i, j) in own acc[w, :, :] { acc[w, i, j] = 0 } } }\n    for (tm, tn)", 1);
    assert!(reason(&before).is_some_and(|r| r.contains("`acc` sums up a share")), "{:?}", reason(&before));
    let integers = "program p(G: launch, n: size, x: in i32[n], y: inout i32[1]) { for b in block.x(G) { for t in threads(1@1) {
        for k in b..n step G { atomic y[0] += x[k] } } } }";
    assert!(is_deterministic(checked(integers).expect("runs").program()));
}

#[test]
fn facts_say_what_consumers_need() {
    let valid = valid_on(&text("hgemm_tma_wgmma"), "h200").expect("fits");
    let [facts] = valid.facts() else { panic!("one launch") };
    assert_eq!((facts.threads, facts.shared_bytes), (384, 163_840 + 64));
    let group = facts.barrier(128, 128).expect("the consumers meet by warpgroup");
    assert_eq!((group.ranges, group.first_id), (2, 1));
    assert_eq!(facts.barriers.len(), 1);
    assert_eq!(facts.registers.iter().map(|(s, n)| (s.name(), *n)).collect::<Vec<_>>(), [("acc", 64)]);
    assert_eq!(facts.register_words, 64);
    let target = Target::by_name("h200").expect("is in the table");
    assert_eq!(target.arch_for(&facts.capabilities), "sm_90a");
    let valid = valid_on(&text("hgemm_cp_async"), "h200").expect("fits");
    let facts = &valid.facts()[0];
    assert_eq!(
        facts.registers.iter().map(|(s, n)| (s.name(), *n)).collect::<Vec<_>>(),
        [("acc", 128), ("a", 32), ("b", 32)]
    );
    assert_eq!(facts.register_words, 160);
    assert!(facts.barriers.is_empty(), "the block's own barrier needs no number");
    assert_eq!(valid.launches().len(), 1);
    assert_eq!(valid.target(), "h200");
    let many = launch("for w in threads(16@64) { barrier }");
    unfit(&many, &["the block needs 17 barriers", "there are 16"]);
    let odd = launch("for w in threads(2@96) { for v in threads(1@64) { barrier } }");
    unfit(&odd, &["overlap each other's numbers"]);
}
