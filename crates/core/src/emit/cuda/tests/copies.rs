//! Asynchronous copies, and which caches keep what they bring.

use super::source;

#[test]
fn copies_of_16_bytes_say_which_caches_keep_them() {
    let text = source(
        "program p(n: size, x: in f32[n, 8; ldx] align 16, y: out f32[n]) assume ldx%4 == 0 {
            for b in block.x(n) {
                alloc s: f32[8] shared
                alloc last: f32[4] shared
                for t in threads(1@1) {
                    cp_async16_ca_f32(s[0 +: 4], x[b, 0 +: 4], 4)
                    cp_async16_f32(s[4 +: 4], x[b, 4 +: 4], 4)
                    cp_async16_ca_f32(last[0 +: 4], x[b, 4 +: 4], b < n - 1 ? 4 : 0)
                }
                cp.commit
                cp.wait 0
                barrier
                for t in threads(1@1) { y[b] = s[0] + s[7] + last[3] }
            }
        }",
    )
    .text;
    let kernel = text.split("__global__").nth(1).unwrap();
    assert_eq!(
        (kernel.matches("cp_async16_ca(").count(), kernel.matches("cp_async16(").count()),
        (2, 1),
        "{text}"
    );
    let helpers = [
        "ca.shared.global [%0], [%1], 16;",
        "ca.shared.global [%0], [%1], 16, %2;",
        "cg.shared.global [%0], [%1], 16;",
    ];
    for of_ptx in helpers {
        assert!(text.contains(&format!("cp.async.{of_ptx}")), "{text}");
    }
    assert_eq!(text.matches(".shared.global").count(), helpers.len(), "{text}");
}
