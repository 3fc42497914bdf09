//! Products of numbers that are split into tf32 parts.

use std::collections::BTreeSet;

use super::{body, statements};
use crate::index::Index;
use crate::layout::Fragment;

/// A product of split numbers in f32 or complex64, `steps` times eight terms, in two tiles.
fn product_of_split_numbers(dtype: &str, steps: i64) -> String {
    statements(&format!(
        "program p(A: in {dtype}[32, {terms}], B: in {dtype}[{terms}, 8], C: out {dtype}[32, 8]) {{
            for g in block.x(1) {{
                for w in threads(1@32) {{
                    alloc acc: {dtype}[2, 16, 8] reg frag D16x8
                    for m in unroll 0..2 {{
                        for (i, j) in own acc[m, :, :] {{ acc[m, i, j] = 0 }}
                    }}
                    for k in 0..{steps} {{
                        alloc a: {dtype}[2, 16, 8] reg frag A16x8
                        alloc b: {dtype}[8, 8] reg frag B8x8
                        for m in unroll 0..2 {{
                            for (i, c) in own a[m, :, :] {{ a[m, i, c] = A[16*m + i, 8*k + c] }}
                        }}
                        for (r, j) in own b[:, :] {{ b[r, j] = B[8*k + r, j] }}
                        for m in unroll 0..2 {{
                            mma_m16n8k8_{dtype}(acc[m, :, :], a[m, :, :], b[:, :])
                        }}
                    }}
                    for m in unroll 0..2 {{
                        for (i, j) in own acc[m, :, :] {{ C[16*m + i, j] = acc[m, i, j] }}
                    }}
                }}
            }}
        }}",
        terms = 8 * steps
    ))
}

#[test]
fn sums_of_split_numbers_are_added_up_apart_and_then_added_to_what_is_there() {
    for (dtype, c_type) in [("f32", "float"), ("c64", "float2")] {
        let text = product_of_split_numbers(dtype, 16);
        let mut from = 0;
        for line in [
            format!("{c_type} acc_sum[2][4] = {{}};"),
            "for (int k = 0; k < 16; ++k) {".to_string(),
            format!("mma_m16n8k8_{dtype}<false>(acc_sum[m], acc_rest[m], a[m], b);"),
            // Not all numbers are finite, or would be when they are rounded.
            "if (__any_sync(~0u, zero_if_finite(acc_rest) != 0.0f)) {".to_string(),
            format!("{c_type} acc_rest[2][4] = {{}};"),
            "#pragma unroll 1".to_string(),
            "for (int k = 0; k < 16; ++k) {".to_string(),
            format!("mma_m16n8k8_{dtype}<true>(acc_sum[m], acc_rest[m], a[m], b);"),
            "add_parts(acc, acc_sum, acc_rest);".to_string(),
            "} else {".to_string(),
            "add_parts(acc, acc_sum, acc_rest);".to_string(),
            "}".to_string(),
        ] {
            let at = text[from..].find(&line).unwrap_or_else(|| panic!("no `{line}` in\n{}", &text[from..]));
            from += at + line.len();
        }
        assert!(!text[from..].contains("acc_sum"), "{text}");
    }
}

/// A loop in which factors for several instructions are read at once is the one that is done again, with what is read.
#[test]
fn factors_that_are_read_at_once_are_read_again() {
    let written = |steps: usize| {
        statements(&format!(
            "program p(A: in f32[16, {terms}], B: in f32[{terms}, 8], C: out f32[16, 8]) {{
                for g in block.x(1) {{
                    for w in threads(1@32) {{
                        alloc acc: f32[16, 8] reg frag D16x8
                        for (i, j) in own acc[:, :] {{ acc[i, j] = 0 }}
                        for k in unroll 0..{steps} {{
                            alloc a: f32[2, 16, 8] reg frag A16x8
                            alloc b: f32[2, 8, 8] reg frag B8x8
                            for (i, c) in own a[0, :, :] {{
                                for v in unroll 0..2 {{ a[v, i, c] = A[i, 16*k + 2*c + v] }}
                            }}
                            for q in unroll 0..2 {{
                                for (r, j) in own b[q, :, :] {{ b[q, r, j] = B[16*k + 2*r + q, j] }}
                            }}
                            for q in unroll 0..2 {{ mma_m16n8k8_f32(acc[:, :], a[q, :, :], b[q, :, :]) }}
                        }}
                        for (i, j) in own acc[:, :] {{ C[i, j] = acc[i, j] }}
                    }}
                }}
            }}",
            terms = 16 * steps
        ))
    };
    // At most 16 instructions one after another: the sum goes over both loops, and is looked at behind them.
    let text = written(8);
    assert_eq!(text.matches("add_parts(acc, acc_sum, acc_rest);").count(), 2, "{text}");
    let (sums, again) = text.split_once("__any_sync").expect("it may be done again");
    let declared = sums.find("float acc_sum[4] = {};").expect("a sum of its own");
    assert!(declared < sums.find("float a[2][4];").expect("fragments"), "{text}");
    assert!(again.contains("#pragma unroll 1\n") && again.contains("float a[2][4];"), "{text}");
    // Of more the inner loop alone has a sum of its own.
    let text = written(9);
    let declared = text.find("float acc_sum[4] = {};").expect("a sum of its own");
    assert!(declared > text.find("float a[2][4];").expect("fragments"), "{text}");
}

/// What is done once more must not have changed anything.
#[test]
fn a_loop_that_changes_more_than_sums_is_written_once_for_any_number() {
    let written = |outside: &str, inside: &str| {
        statements(&format!(
            "program p(A: in f32[16, 32], B: in f32[8, 8], C: out f32[16, 8], D: out f32[4, 16, 8]) {{
                for g in block.x(1) {{
                    for w in threads(1@32) {{
                        alloc acc: f32[16, 8] reg frag D16x8
                        for (i, j) in own acc[:, :] {{ acc[i, j] = 0 }}
                        alloc b: f32[8, 8] reg frag B8x8
                        for (r, j) in own b[:, :] {{ b[r, j] = B[r, j] }}
                        {outside}
                        for n in unroll 0..4 {{
                            alloc a: f32[16, 8] reg frag A16x8
                            for (i, c) in own a[:, :] {{ a[i, c] = A[i, 8*n + c] }}
                            {inside}
                            mma_m16n8k8_f32(acc[:, :], a[:, :], b[:, :])
                        }}
                        for (i, j) in own acc[:, :] {{ C[i, j] = acc[i, j] }}
                    }}
                }}
            }}"
        ))
    };
    let plain = written("", "");
    assert!(plain.contains("<false>(acc_sum") && plain.contains("__any_sync"), "{plain}");
    let kept = "alloc s: f32[16, 8] reg frag A16x8 for (i, c) in own s[:, :] { s[i, c] = 0 }";
    for (outside, inside) in [
        ("", "for (i, c) in own a[:, :] { D[n, i, c] = a[i, c] }"),
        (kept, "for (i, c) in own s[:, :] { s[i, c] += a[i, c] }"),
        ("", "cp.wait 0"),
    ] {
        let text = written(outside, inside);
        assert!(text.contains("acc_sum") && text.contains("<true>(acc_sum"), "{text}");
        assert!(!text.contains("<false>") && !text.contains("__any_sync"), "{text}");
    }
    // Elements of registers are in the text: no loop may count them.
    let all = "alloc f: f32[4, 16, 8] reg frag A16x8
               for m in unroll 0..4 { for (i, c) in own f[m, :, :] { f[m, i, c] = A[i, 8*m + c] } }";
    let text = written(all, "mma_m16n8k8_f32(acc[:, :], f[n, :, :], b[:, :])");
    assert!(text.contains("<true>(acc_sum") && !text.contains("#pragma unroll 1\n"), "{text}");
    assert!(plain.contains("#pragma unroll 1\n"), "{plain}");
}

#[test]
fn a_loop_that_splits_few_numbers_for_its_sums_is_written_once() {
    let written = |terms: i64, split: &str| {
        statements(&format!(
            "program p(A: in f32[16, {terms}], B: in f32[{terms}, 32], C: out f32[16, 32]) {{
                for g in block.x(1) {{
                    for w in threads(1@32) {{
                        alloc acc: f32[4, 16, 8] reg frag D16x8
                        for n in unroll 0..4 {{ for (i, j) in own acc[n, :, :] {{ acc[n, i, j] = 0 }} }}
                        for k in 0..{trips} {{
                            alloc a: f32[16, 8] reg frag A16x8
                            alloc b: f32[4, 8, 8] reg frag B8x8 {split}
                            for (i, c) in own a[:, :] {{ a[i, c] = A[i, 8*k + c] }}
                            for n in unroll 0..4 {{
                                for (r, j) in own b[n, :, :] {{ b[n, r, j] = B[8*k + r, 8*n + j] }}
                                mma_m16n8k8_f32(acc[n, :, :], a[:, :], b[n, :, :])
                            }}
                        }}
                        for n in unroll 0..4 {{
                            for (i, j) in own acc[n, :, :] {{ C[i, 8*n + j] = acc[n, i, j] }}
                        }}
                    }}
                }}
            }}",
            trips = terms / 8
        ))
    };
    // A lane splits 4 numbers of a, and 8 of b, and has 16 elements of sums.
    for (terms, split, repeats) in
        [(16, "", false), (24, "", true), (48, "split", false), (56, "split", true)]
    {
        let text = written(terms, split);
        assert!(text.contains("add_parts(acc, acc_sum, acc_rest);"), "{text}");
        assert_eq!(text.contains("__any_sync"), repeats, "{terms} {split}: {text}");
    }
}

/// The bound of the error counts the instructions whose sum matrix units add up.
#[test]
fn matrix_units_add_up_no_more_than_sixteen_instructions() {
    for (steps, dtype) in [(17, "f32"), (40, "c64"), (1, "f32")] {
        let text = product_of_split_numbers(dtype, steps);
        let apart = text.contains("add_parts(acc, acc_sum, acc_rest);");
        assert_eq!(apart, steps <= 16, "{text}");
        let alone = format!("mma_m16n8k8_{dtype}<true>(sum, rest, a[m], b);");
        assert_eq!(text.contains(&alone), steps > 16, "{text}");
        assert_eq!(text.contains("add_parts(acc[m], sum, rest);"), steps > 16, "{text}");
    }
}

#[test]
fn parts_that_are_stored_lie_in_planes_and_are_copied_as_they_are() {
    for (dtype, planes, c_type, load) in
        [("f32", 2, "float2", "load_parts_f32"), ("c64", 4, "float4", "load_parts_c64")]
    {
        let text = body(&format!(
            "program p(A: in {dtype}[16, 8], B: in {dtype}[8, 8], C: out {dtype}[16, 8], D: out {dtype}[8, 8]) {{
                for g in block.x(1) {{
                    alloc s: {dtype}[8, 8] shared split layout (r, c) => 10*r + c
                    for r in threads(8@8), c in threads(8@1) {{ s[r, c] = r < 7 ? B[r, c] : 0 }}
                    barrier
                    for w in threads(2@32) {{
                        alloc acc: {dtype}[16, 8] reg frag D16x8
                        for (i, j) in own acc[:, :] {{ acc[i, j] = 0 }}
                        alloc a: {dtype}[16, 8] reg frag A16x8
                        alloc b: {dtype}[8, 8] reg frag B8x8 split
                        for (i, c) in own a[:, :] {{ a[i, c] = A[i, c] }}
                        for (r, j) in own b[:, :] {{ b[r, j] = s[r, j] }}
                        mma_m16n8k8_{dtype}(acc[:, :], a[:, :], b[:, :])
                        for (i, j) in own acc[:, :] {{ if w == 0 {{ C[i, j] = acc[i, j] }} }}
                    }}
                    for r in threads(8@8), c in threads(8@1) {{ D[r, c] = s[r, c] }}
                }}
            }}"
        ));
        for line in [
            format!("float s[{planes}][8][10];"),
            format!("{c_type} b[2];"),
            format!("b[r2] = {load}(&s[0][r3][j], 80);"),
            format!("whole({load}(&s[0]["),
        ] {
            assert!(text.contains(&line), "no `{line}` in\n{text}");
        }
        // A plane has room for the padding of its last row.
        assert!(text.contains("store_parts(&s[0][") && text.contains(", 80, "), "{text}");
        assert!(!text.contains("in_parts(whole"), "{text}");
    }
}

/// The sum is behind until the loop ends: nobody may look at it there, and one that is declared in the loop is no sum over it.
#[test]
fn a_sum_that_is_looked_at_in_the_loop_is_not_added_up_apart() {
    let text = |before: &str, inside: &str, after: &str| {
        body(&format!(
            "program p(A: in f32[16, 8], B: in f32[8, 8], C: out f32[4, 16, 8]) {{
                for g in block.x(1) {{
                    for w in threads(1@32) {{
                        {before}
                        for n in 0..4 {{
                            {inside}
                            alloc a: f32[16, 8] reg frag A16x8
                            alloc b: f32[8, 8] reg frag B8x8
                            for (i, c) in own a[:, :] {{ a[i, c] = A[i, c] }}
                            for (r, j) in own b[:, :] {{ b[r, j] = B[r, j] }}
                            mma_m16n8k8_f32(acc[:, :], a[:, :], b[:, :])
                            {after}
                        }}
                        {last}
                    }}
                }}
            }}",
            last =
                if after.is_empty() { "for (i, j) in own acc[:, :] { C[0, i, j] = acc[i, j] }" } else { "" },
        ))
    };
    let zero = "alloc acc: f32[16, 8] reg frag D16x8 for (i, j) in own acc[:, :] { acc[i, j] = 0 }";
    let store = "for (i, j) in own acc[:, :] { C[n, i, j] = acc[i, j] }";
    for (before, inside, after, apart) in
        [(zero, "", "", true), (zero, "", store, false), ("", zero, store, false)]
    {
        let text = text(before, inside, after);
        assert_eq!(text.contains("acc_sum"), apart, "{text}");
        assert_eq!(text.contains("add_parts(acc, sum, rest);"), !apart, "{text}");
    }
}

/// A number that cannot be split shows in a whole row or column of a tile, of which no lane has to look at more than these.
#[test]
fn the_elements_that_are_looked_at_are_in_every_row_and_column() {
    let looked_at = [0, 3];
    let tile = Fragment::by_name("D16x8").expect("a tile of results");
    let places = (0..32).flat_map(|lane| looked_at.map(|register| (lane, register)));
    let places =
        places.map(|(lane, register)| (tile.place)(&Index::constant(lane), &Index::constant(register)));
    let (rows, columns): (BTreeSet<_>, BTreeSet<_>) =
        places.map(|(row, column)| (row.as_constant(), column.as_constant())).unzip();
    assert_eq!(rows, (0..16).map(Some).collect());
    assert_eq!(columns, (0..8).map(Some).collect());
}
