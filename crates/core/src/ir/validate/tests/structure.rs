//! Running in order: declarations, ranges, effects, initial stores, roles, vector loops.

use super::{checked, edited, refused, text};

/// A program of one statement list over a few parameters.
fn small(body: &str) -> String {
    format!(
        "program p(n: size, G: launch, f: flag, x: in f32[n], h: in bf16[64, 64; ldh], y: out f32[n], \
         z: inout f32[n]) {{ {body} }}"
    )
}

#[test]
fn declarations_suit_their_memory() {
    refused(&small("alloc s: f32[4] reg layout (i) => i"), &["`s` has a layout", "not in shared memory"]);
    refused(&small("alloc s: f32[4@1] shared"), &["`s` is spread over threads", "not in registers"]);
    refused(
        &small("alloc s: f32[n@1] reg"),
        &["`s` is spread over a number of threads that is not constant"],
    );
    refused(&small("alloc s: f32[4@0] reg"), &["pitch 0"]);
    refused(&small("alloc s: f32[4, 0] reg"), &["`s` has no elements"]);
    refused(&small("alloc s: f32[-4, n] global"), &["`s` has no elements"]);
    refused(&small("alloc s: f32[16, 16] reg frag D16x8"), &["no tile", "16 x 8"]);
    refused(&small("alloc s: f32[16, 8@2] reg frag D16x8"), &["both by a fragment and by a pitch"]);
    refused(&small("alloc r: mbar ring 0 count 1"), &["depth 0"]);
    refused(
        &edited("sgemm_split_k", "alloc As: f32[64, 16] shared", "alloc As: f32[64, 16] global"),
        &["`As` is allocated in device memory by each block", "s.by.bx"],
    );
    refused(&small("alloc s: f32[4, 4] shared layout (i) => i"), &["1 axes for 2 dimensions"]);
}

#[test]
fn ranges_mean_something() {
    refused(&small("for i in 0..n step 0 { y[i] = 0 }"), &["step 0", "not certainly positive"]);
    refused(&small("for i in 0..n step n { y[i] = 0 }"), &["step n", "not certainly positive"]);
    checked(&small("for i in 0..n step G { y[i] = 0 }")).expect("a launch parameter is positive");
    refused(
        &small("for s in 0..5 { for i in part(s, 4) 0..n { y[i] = 0 } }"),
        &["part s of 4 may not exist"],
    );
    refused(
        &edited("sgemm_split_k", "s in block.z(4)", "s in block.z(8)"),
        &["part s of 4 may not exist", "exactly as many"],
    );
    refused(
        &edited("hgemm_tma_wgmma", "share(g, G)", "share(g, M)"),
        &["not shared out", "G blocks and a stride of M"],
    );
    refused(
        &edited("hgemm_tma_wgmma", "share(g, G)", "share(0, G)"),
        &["not shared out", "0 is no block variable"],
    );
    refused(&small("for i in 0..n { y[xor(i - 1, 1)] = 0 }"), &["i - 1 stands under xor", "may be negative"]);
    checked(&small("for i in 0..n { if 1 <= i { y[xor(i - 1, 1)] = 0 } }")).expect("guarded");
    let counted = "for b in block.x(1) { for t in threads(4@1) { for k in 0..n counting c { y[k] = 0 } } }";
    refused(
        &small(counted),
        &["`c` counts a loop inside the loop `t` over threads", "around the thread loop"],
    );
}

#[test]
fn only_what_may_be_written_is() {
    refused(&small("for i in 0..n { x[i] = 0 }"), &["`x` is written", "`in` parameter", "i: x[i] = 0"]);
    refused(
        &small("alloc s: bf16[64, 8] shared for i in 0..8 { cp_async16(h[i, 0 +: 8], s[i, 0 +: 8], 8) }"),
        &["`h` is written", "`in` parameter"],
    );
    refused(
        &edited("tsmttsm_atomic", "acc[s, nt, mt, i, j] += an", "atomic acc[s, nt, mt, i, j] += an"),
        &["`acc` is reduced atomically", "a register has one owner"],
    );
    refused(
        &edited("hgemm_tma_wgmma", "in own acc[w, :, :]", "in own Cs[w, 0, :, :]"),
        &["the elements of `Cs` have no owners"],
    );
}

#[test]
fn runs_are_whole_and_of_one_owner() {
    let by = |alloc: &str, run: i64| {
        format!(
            "program p() {{ for b in block.x(1) {{ for w in threads(1@32) {{ alloc r: f64[{alloc}
               for (i, j by {run}) in own r[:, :] {{ r[i, j] = 0 }} }} }} }}"
        )
    };
    for fits in [("8, 8] reg frag D8x8", 2), ("32@1, 6] reg", 3)] {
        if let Err(faults) = checked(&by(fits.0, fits.1)) {
            panic!("{fits:?}: {}", faults[0]);
        }
    }
    for (alloc, run) in [
        ("8, 8] reg frag D8x8", 4),
        ("8, 8] reg frag D8x8", 1 << 48),
        ("8, 4] reg frag A8x4", 2),
        ("32@1, 6] reg", 4),
        ("6, 32@1] reg", 2),
    ] {
        refused(&by(alloc, run), &["no thread has the elements of `r` in runs of", &run.to_string()]);
    }
}

#[test]
fn instructions_are_called_as_their_records_say() {
    let mma = "mma_m16n8k16_bf16(acc[wm, wn, mi, 2*nj + h, :, :], a[mi, :, :], b[nj, :, 8*h +: 8])";
    let cases: [(&str, &str, &[&str]); 7] = [
        (
            "mma_m16n8k16_bf16(",
            "mma_m16n8k32_bf16(",
            &["there is no instruction `mma_m16n8k32_bf16`", "ldmatrix_x4"],
        ),
        (
            "mma_m16n8k16_bf16(",
            "mma_m16n8k16_f16(",
            &["operand a of mma_m16n8k16_f16 is `a` of type bf16", "works on f16"],
        ),
        ("a[mi, :, :], b[nj", "b[nj, :, :], b[nj", &[]),
        ("b[nj, :, 8*h +: 8])", "b[nj, :, :])", &["operand b of mma_m16n8k16_bf16 has extents [16, 16]"]),
        ("b[nj, :, 8*h +: 8])", "b[nj, :, 8*h +: 8], 1)", &["takes 3 operands, not 4"]),
        ("b[nj, :, 8*h +: 8])", "8)", &["operand b of mma_m16n8k16_bf16 is a window"]),
        (
            "a[mi, :, :], b[nj",
            "acc[wm, wn, mi, 2*nj + h, :, :], b[nj",
            &["overlaps an input in `acc`", "copy"],
        ),
    ];
    assert!(text("hgemm_cp_async").contains(mma));
    for (old, new, words) in cases {
        let text = edited("hgemm_cp_async", old, new);
        if words.is_empty() {
            checked(&text).expect("only the fragment is wrong, and that is a question of the target");
        } else {
            refused(&text, words);
        }
    }
    refused(
        &edited("hgemm_tma_wgmma", ") -> full[n]", ")"),
        &["nobody learns when tma_load_sw128 is complete"],
    );
    let reports = edited("hgemm_tma_wgmma", "Cs[w, q, :, :])", "Cs[w, q, :, :]) -> full[n]");
    refused(&reports, &["tma_store_sw128 reports to `full`"]);
    let narrower = edited("hgemm_tma_wgmma", "A[128*tm +: 128, 64*k +: 64]", "A[128*tm +: 64, 64*k +: 64]");
    refused(&narrower, &["the operands of tma_load_sw128 have extents [[128, 64], [64, 64]]"]);
    let wide = edited("hgemm_tma_wgmma", "Bs[n%4, :, 16*ks +: 16])", "Bs[n%4, 0 +: 64, 16*ks +: 16])");
    refused(&wide, &["the operands of wgmma_bf16_sw128 have extents"]);
    let halves = edited("reduce_two_pass", "alloc t: f32[32@1] reg", "alloc t: f16[32@1] reg");
    refused(&halves, &["operand t of shfl_xor is `t` of type f16", "4 or 8 or 16 bytes a lane"]);
    let integers = edited("reduce_two_pass", "alloc t: f32[32@1] reg", "alloc t: i32[32@1] reg");
    refused(&integers.replacen("+= t[l]", "+= f32(t[l])", 1), &["operands of shfl_xor have different types"]);
    refused(
        &edited("reduce_two_pass", "shfl_xor(t[:], v[w, :], d)", "shfl_xor(v[w, :], v[w, :], d)"),
        &["overlaps an input"],
    );
}

#[test]
fn reductions_have_an_initial_store() {
    refused(&small("for i in 0..n { y[i] += x[i] }"), &["`y` is reduced into before", "store the identity"]);
    checked(&small("for i in 0..n { z[i] += x[i] }")).expect("the caller filled it");
    refused(&small("for i in 0..n { z[i] = y[i] }"), &["`y` is read before anything is stored in it"]);
    refused(
        &edited("sgemm_block_tiling", "acc[ty, tx, i, j] = 0", "As[0, 0] = 0"),
        &["`acc` is reduced into before", "by.bx.ko.ty.tx.ki.i.j: acc[ty, tx, i, j] += ra[i] * rb[j]"],
    );
    refused(
        &edited("hgemm_tma_wgmma", "acc[w, i, j] = 0", "Cs[w, 0, i, j] = 0"),
        &["`acc` is reduced into before"],
    );
    // A value may come from an earlier iteration, but only if the buffer outlives the iteration.
    let carried = "alloc r: f32[1] reg for i in 0..n { if 1 <= i { y[i] = r[0] } r[0] = x[i] }";
    checked(&small(carried)).expect("stored by the iteration before");
    let lost = "for i in 0..n { alloc r: f32[1] reg if 1 <= i { y[i] = r[0] } r[0] = x[i] }";
    refused(&small(lost), &["`r` is read before"]);
}

#[test]
fn roles_stand_inside_the_loops_they_share() {
    refused(
        &text("pictures/roles_outside"),
        &["`full` is counted by `c` here and by `p` in another role", "put both roles inside one loop"],
    );
    refused(&edited("pictures/roles_inside", "consumer 32..64", "consumer 16..64"), &["share threads"]);
    refused(
        &edited("pictures/roles_inside", "consumer 32..64", "consumer 64..64"),
        &["has the threads 64..64"],
    );
    let nested = small(
        "for b in block.x(1) { roles a 0..32, c 32..64 on a { on c { for t in threads(1@1) { y[0] = 0 } } } }",
    );
    refused(&nested, &["role `c` acts inside role `a`"]);
    let under =
        small("for b in block.x(1) { roles a 0..32, c 32..64 for t in threads(32@1) { on a { y[0] = 0 } } }");
    refused(&under, &["role `a` acts inside the thread loop `t`"]);
    let twice = small("for b in block.x(1) { roles a 0..32 roles c 32..64 }");
    refused(&twice, &["roles are not declared once"]);
    let negative = edited("pictures/roles_inside", "await(full[p])", "await(full[-p - 1])");
    refused(&negative, &["`full` has no phase -p - 1"]);
}

#[test]
fn a_vector_loop_is_one_assignment() {
    let vector = "for v in vector 0..4 { AA[ty, 64*u + 4*tx + v] = A[16*ko + ty, 128*by + 64*u + 4*tx + v] }";
    let whole = text("sgemm_virtual_threads");
    let (_, code) = whole.split_once("\nprogram").expect("a comment, then the program");
    let long = format!("program {}", code.split_whitespace().collect::<Vec<_>>().join(" "));
    assert!(long.contains(vector));
    let change = |new: &str| long.replacen(vector, new, 1);
    refused(&change(&vector.replace("0..4", "0..3")), &["`v` is not 0..2, 4, 8 or 16", "split it"]);
    refused(&change(&vector.replace("0..4", "1..5")), &["`v` is not 0..2, 4, 8 or 16"]);
    refused(&change(&vector.replace("] = A", "] += A")), &["is a reduction", "unroll it"]);
    refused(&change(&vector.replace("= A[", "= v < 2 ? 0 : A[")), &["differ in a condition"]);
    let guarded = vector.replace("{ AA", "{ if v < n0 { AA").replace("n0", "K") + " }";
    refused(&change(&guarded), &["is not one assignment", "guards around the loop"]);
}

#[test]
fn a_tensor_starts_where_an_element_can() {
    for align in [0, 2, 3, 12, 32] {
        let text = format!("program p(x: in f32[4] align {align}) {{ }}");
        refused(&text, &[&format!("`x` is aligned to {align} bytes"), "power of two from 4 to 16"]);
    }
    assert!(checked("program p(x: in f32[4] align 4, y: in c64[4] align 8) { }").is_ok());
}
