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
fn copies_that_nobody_looks_at_have_a_word_of_each_thread() {
    let program = |rows: i64| {
        format!(
            "program p(n: size, x: in f64[n], y: out f64[n, 3; ldy]) {{
                for b in block.x(n) {{
                    alloc s: f64[{rows}] shared
                    for t in threads(64@1) {{
                        s[t] = x[b]
                        copy_l2_before(y[b, 0 +: 1])
                        copy_l2_behind(y[b, 2 +: 1])
                    }}
                    cp.commit
                    cp.wait 0
                    barrier
                    for t in threads(1@1) {{ for j in 0..3 {{ y[b, j] = s[j] }} }}
                }}
            }}"
        )
    };
    let few = source(&program(64));
    assert!(few.text.contains("__shared__ unsigned landing[64];"), "{}", few.text);
    assert!(
        few.text.contains("if (!begins_sector(&y[")
            && few.text.contains("copy_l2(&landing[threadIdx.x], &y[")
    );
    assert_eq!((few.kernels[0].shared_bytes, few.kernels[0].dynamic_shared_bytes), (64 * 8 + 64 * 4, 0));
    // Behind everything else where shared memory has to be asked for.
    let many = source(&program(6144));
    assert!(many.text.contains("landing = (unsigned*)(smem + 49152);"), "{}", many.text);
    assert_eq!(many.kernels[0].dynamic_shared_bytes, 49152 + 256);
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

#[test]
fn what_a_call_reads_is_asked_for_before_it_waits_and_no_more() {
    let program = |how: &str| {
        format!(
            "program p(n: size, a: in f32[n, 3; lda], b: in f64[n], y: out f32[n]) begins_early {how} {{
                alloc ws: f32[n] global
                for b1 in block.x(n) {{ for t in threads(1@1) {{ ws[b1] = a[b1, 0] + f32(b[b1]) }} }}
                for b1 in block.x(n) {{ for t in threads(1@1) {{ y[b1] = ws[b1] }} }}
            }}"
        )
    };
    let kernels = |how: &str| {
        let text = source(&program(how)).text;
        let mut parts = text.split("__global__").skip(1).map(str::to_string);
        (parts.next().unwrap(), parts.next().unwrap())
    };
    let (first, second) = kernels("asks 64 KiB bulk");
    let asked = "    let_next_launch_begin();
    ask_by_bulk(a, min(((n - 1LL)*lda + 3)*4, 65536LL));
    ask_by_bulk(b, min(1LL*n*8, 65536LL));
    wait_for_launch_before();
";
    assert!(first.contains(asked), "{first}");
    assert!(!second.contains("ask_by"), "what it reads is not there yet: {second}");
    let (first, _) = kernels("asks 1 KiB lines");
    assert!(first.contains("ask_by_lines(b, min(1LL*n*8, 1024LL));"), "{first}");
}

#[test]
fn a_program_says_which_launches_let_others_begin_before_they_wait() {
    let (before, after) = (
        "{\n    let_next_launch_begin();\n    wait_for_launch_before();\n",
        "{\n    wait_for_launch_before();\n    let_next_launch_begin();\n",
    );
    for (lets, orders) in
        [("", [before, after]), ("lets none", [after, after]), ("lets all", [before, before])]
    {
        let source = source(&format!(
            "program p(n: size, x: in f32[n], y: out f32[n]) begins_early {lets} {{
                alloc ws: f32[n] global
                for b in block.x(n) {{ for t in threads(1@1) {{ ws[b] = x[b] }} }}
                for b in block.x(n) {{ for t in threads(1@1) {{ y[b] = ws[b] }} }}
            }}"
        ));
        for (kernel, order) in source.text.split("__global__").skip(1).zip(orders) {
            assert!(kernel.contains(order), "{lets}: {kernel}");
        }
    }
}
