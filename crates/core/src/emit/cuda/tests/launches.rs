//! Launches that begin before what was launched before them has ended.

use super::{source, source_for};

#[test]
fn a_launch_waits_for_those_before_it_and_lets_the_next_one_begin() {
    let program = "program p(n: size, zero: flag, x: in f32[n], y: inout f32[n]) {
            alloc ws: f32[n] global
            if zero { for b in block.x(n) { for t in threads(1@1) { ws[b] = 0 } } }
            else { for b in block.x(n) { for t in threads(1@1) { ws[b] = x[b] } } }
            for b in block.x(n) { for t in threads(1@1) { y[b] = ws[b] + x[b] } }
        }";
    let source = source(program);
    // One of the first two is launched, and then the third.
    assert_eq!(source.kernels.iter().map(|k| k.waits).collect::<Vec<_>>(), [false, false, true]);
    let [first, second, third] = [1, 2, 3].map(|n| source.text.split("__global__").nth(n).unwrap());
    for one in [first, second] {
        assert!(one.contains("{\n    let_next_launch_begin();\n") && !one.contains("wait_for"), "{one}");
    }
    assert!(third.contains("{\n    wait_for_launch_before();\n") && !third.contains("let_next"), "{third}");
    // What was written before must not be read before the wait; what was not may be.
    assert!(third.contains("const float* __restrict__ x") && third.contains("const float* ws"), "{third}");
    let older = source_for("a100-80gb", program);
    assert!(!older.text.contains("launch_be") && older.kernels.iter().all(|k| !k.waits), "{}", older.text);
}

#[test]
fn a_program_says_how_many_bytes_are_fetched_where_a_gpu_follows() {
    let program = "program p(n: size, x: in f32[n], y: out f32[n]) fetches 32 {
            for b in block.x(n) { for t in threads(1@1) { y[b] = x[b] } }
        }";
    let here = source(program);
    assert!(
        here.fetches == Some(32) && here.text.contains("(cudaLimitMaxL2FetchGranularity, 32)"),
        "{}",
        here.text
    );
    let older = source_for("a100-80gb", program);
    assert!(older.fetches.is_none() && !older.text.contains("Granularity"), "{}", older.text);
}

#[test]
fn a_call_that_begins_early_waits_for_whatever_was_launched_before() {
    let program = "program p(n: size, x: in f32[n], y: out f32[n]) begins_early {
            alloc ws: f32[n] global
            for b in block.x(n) { for t in threads(1@1) { ws[b] = x[b] } }
            for b in block.x(n) { for t in threads(1@1) { y[b] = ws[b] } }
        }";
    let source = source(program);
    assert!(source.begins_early && source.kernels.iter().all(|k| k.waits));
    // Blocks of the next call do not take room while the first launch of this one still needs it.
    let orders = [
        "{\n    let_next_launch_begin();\n    wait_for_launch_before();\n",
        "{\n    wait_for_launch_before();\n    let_next_launch_begin();\n",
    ];
    for (kernel, order) in source.text.split("__global__").skip(1).zip(orders) {
        assert!(kernel.contains(order), "{kernel}");
        // Another call may write what this one reads.
        assert!(!kernel.contains("__restrict__ x") && !kernel.contains("__restrict__ y"), "{kernel}");
    }
    let single = self::source(
        "program p(n: size, y: out f32[n]) begins_early { for b in block.x(n) { for t in threads(1@1) { y[b] = 0 } } }",
    );
    assert!(single.text.contains(orders[0]), "{}", single.text);
    let older = source_for("a100-80gb", program);
    assert!(!older.begins_early && !older.text.contains("launch_be"), "{}", older.text);
}
