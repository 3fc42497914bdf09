//! Tall and skinny products by the command line: what is chosen, and that it is right.

use warpwright::inputs::random;
use warpwright::npy;
use warpwright_core::dtype::DType;

use crate::cli::{json, refusal};

#[test]
fn strided_and_skewed_products_go_through_the_families() {
    for (arguments, family) in [
        ("5x7x300 --layout tn --dtype f64 --lda 9 --ldb 8 --ldc 11 --beta 0.5", "tsmttsm"),
        ("1x128x2000 --layout cn --dtype c64 --lda 2 --ldb 130 --alpha 2", "tsmttsm"),
        ("17x64x1000 --layout tn --dtype f32 --ldb 67 --beta -1", "tsmttsm"),
        ("900x3x7 --layout nn --dtype c128 --lda 8 --ldb 5 --ldc 9 --beta 0.5", "tsmm"),
        ("2000x128x1 --layout nn --dtype f32 --lda 3 --ldc 131", "tsmm"),
    ] {
        let report = json(&format!("gemm {arguments} --device sim --trials 1 --json"), 0);
        assert_eq!(report["kernel"]["family"], family, "{arguments}");
        assert_eq!(report["check"]["passed"], true, "{arguments}");
        assert_eq!(report["kernel"]["deterministic"], true, "{arguments}");
    }
}

#[test]
fn rows_that_stand_apart_arrive_as_boxes_or_with_what_lies_between_them() {
    for (arguments, ways) in [
        ("9x12x700 --layout cn --dtype c128 --lda 12 --ldb 14 --beta 0.5", &["boxes", "span"][..]),
        ("24x20x700 --layout tn --dtype f32 --lda 28 --ldb 24", &["boxes", "span"]),
        ("9x9x700 --layout tn --dtype f64 --lda 11 --ldb 10", &["span"]),
        ("9x9x700 --layout tn --dtype f32 --lda 11 --offset 3,2,1", &["span"]),
        ("24x9x700 --layout cn --dtype c64 --offset 1,0,1 --beta 2", &["span"]),
        ("9x9x700 --layout cn --dtype c64 --lda 12 --ldb 12 --same", &["span", "boxes"]),
    ] {
        for copy in ways {
            let product = format!(
                "gemm {arguments} --kernel tsmttsm --param unit=mma --param copy={copy} --device sim:h200 --trials 1 --json"
            );
            // Equal to its specification, and near the reference, which knows no gaps.
            let report = json(&product, 0);
            assert_eq!(report["check"]["passed"], true, "{product}");
            assert_eq!(report["kernel"]["parameters"]["copy"], *copy, "{product}");
        }
    }
    for (arguments, stores) in [
        ("700x12x9 --dtype c128 --lda 10 --ldb 14 --beta 0.5", &["direct", "shared"][..]),
        ("700x32x32 --dtype f32 --offset 1,2,3", &["shared"]),
        ("700x9x24 --dtype f64 --lda 25 --offset 1,0,1 --beta 2", &["shared"]),
        ("700x16x16 --dtype c64 --lda 18 --ldc 17 --offset 1,1,0 --alpha 2", &["shared"]),
    ] {
        for store in stores {
            let form = format!("unit=mma,team=block,rows=32,wm=2,wn=1,store={store},copy=span");
            let product =
                format!("gemm {arguments} --kernel tsmm --param {form} --device sim:h200 --trials 1 --json");
            let report = json(&product, 0);
            assert_eq!(report["check"]["passed"], true, "{product}");
            assert_eq!(report["kernel"]["parameters"]["copy"], "span", "{product}");
        }
    }
    let dense = refusal(
        "gemm 9x9x700 --layout tn --kernel tsmttsm --param unit=mma --param copy=span --device sim:h200",
    );
    assert!(dense.contains("copy=span is no choice") && dense.contains("try one of"), "{dense}");
}

#[test]
fn matrices_that_start_anywhere_go_through_the_same_kernels() {
    for (arguments, offset, family) in [
        ("12x20x3000 --layout tn --dtype f64 --beta 0.5", [1, 0, 3], "tsmttsm"),
        ("33x33x3000 --layout tn --dtype f32 --lda 36", [3, 2, 1], "tsmttsm"),
        ("9x9x3000 --layout cn --dtype c64 --same", [1, 1, 1], "tsmttsm"),
        ("3000x24x20 --dtype f32 --ldc 25", [0, 1, 2], "tsmm"),
        ("3000x8x8 --dtype c128 --beta 1", [1, 2, 3], "tsmm"),
        ("130x140x70 --dtype f32", [2, 1, 3], "sgemm"),
    ] {
        let [a, b, c] = offset;
        let product = format!("gemm {arguments} --offset {a},{b},{c} --device sim --trials 1 --json");
        let report = json(&product, 0);
        assert_eq!(report["kernel"]["family"], family, "{product}");
        assert_eq!(report["problem"]["offset"], serde_json::json!(offset), "{product}");
        assert_eq!(report["check"]["passed"], true, "{product}");
        let whole = arguments.contains("c128");
        let name = report["kernel"]["name"].as_str().unwrap();
        assert_eq!(name.rsplit('_').next().unwrap().starts_with('c'), !whole, "{name}");
    }
    let aligned = json("gemm 12x20x3000 --layout tn --offset 0,0,0 --device sim --trials 1 --json", 0);
    assert!(aligned["problem"].get("offset").is_none(), "{}", aligned["problem"]);
    let ranked = json(
        "tune 12x20x3000000 --dtype f64 --layout tn --offset 1,0,0 --param depth=32 --param stages=2 --device sim --json",
        0,
    );
    assert_eq!(ranked["problem"]["offset"], serde_json::json!([1, 0, 0]));

    let product = "gemm 12x20x3000 --layout tn --device sim";
    assert!(refusal(&format!("{product} --offset 1,0")).contains("three whole numbers of elements"));
    assert!(refusal(&format!("{product} --offset 1,-2,0")).contains("none negative"));
    let same = refusal("gemm 9x9x3000 --layout tn --same --offset 1,0,0 --device sim");
    assert!(same.contains("start in different places"), "{same}");
    // A program that was written for aligned matrices says so, and so does a schedule that needs them.
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/sgemm_block_tiling.ww");
    let said = refusal(&format!("gemm 12x20x30 --kernel {program} --offset 0,1,0 --device sim"));
    assert!(said.contains("its B starts at a multiple of 16 bytes") && said.contains("`align 4`"), "{said}");
    let said = refusal("gemm 12x20x30 --dtype bf16 --kernel hgemm_cp_async --offset 0,1,0 --device sim");
    assert!(said.contains("`B` starts at a multiple of 2 bytes, not of 16"), "{said}");
}

/// What is added to C by matrix units goes through shared memory, whoever chose the kernel: what others found for beta = 0 is adapted.
#[test]
fn what_is_added_to_goes_through_shared_memory() {
    let product = "explain 4000000x40x40 --dtype f64 --gpu h200 --json";
    let chosen = |arguments: &str| json(&format!("{product}{arguments}"), 0)["kernel"]["parameters"].clone();
    let (alone, added) = (chosen(""), chosen(" --beta 1"));
    assert_eq!((alone["unit"].as_str(), added["unit"].as_str()), (Some("mma"), Some("mma")));
    assert_eq!(
        (alone["store"].as_str(), added["store"].as_str()),
        (Some("direct"), Some("shared")),
        "{alone} {added}"
    );
    let named =
        "gemm 400x40x40 --dtype f64 --kernel tsmm --param unit=mma --param store=direct --device sim:h200";
    assert_eq!(json(&format!("{named} --json"), 0)["check"]["passed"], true);
    let said = refusal(&format!("{named} --beta 1"));
    assert!(
        said.contains("store=direct is no choice of tsmm, because it has no meaning for 400x40x40"),
        "{said}"
    );
    assert!(said.contains("`store` says ") && said.contains("; try one of shared"), "{said}");
    // Numbers of 16 bytes may go either way.
    assert_eq!(
        json(&format!("{} --beta 1 --json", named.replace("f64", "c128")), 0)["check"]["passed"],
        true
    );
}

#[test]
fn a_matrix_times_itself_is_one_operand() {
    for arguments in
        ["12x12x2000 --dtype f64 --layout tn", "9x9x2000 --dtype c64 --layout cn --lda 11 --beta 0.5"]
    {
        let report = json(&format!("gemm {arguments} --same --device sim --trials 1 --json"), 0);
        assert_eq!(report["problem"]["same"], true);
        assert!(report["kernel"]["name"].as_str().unwrap().ends_with("_same"), "{}", report["kernel"]);
        assert_eq!(report["check"]["passed"], true, "{arguments}");
    }
    // A kernel with two operands takes the matrix for both.
    let square = json("gemm 40x40x40 --layout nt --same --device sim --trials 1 --json", 0);
    assert_eq!(square["check"]["passed"], true);
    // One file for both operands is one matrix, too.
    let path = std::env::temp_dir().join(format!("warpwright-same-{}.npy", std::process::id()));
    let matrix = random(DType::F64, 300, 4, 4, 1).unwrap();
    npy::write(&path, &matrix).unwrap();
    let (file, product) = (path.display(), "gemm 4x4x300 --dtype f64 --layout tn --device sim --json");
    assert_eq!(json(&format!("{product} --a {file} --b {file}"), 0)["problem"]["same"], true);
    assert!(refusal(&format!("{product} --same --b {file}")).contains("with --same B is A"));
    std::fs::remove_file(&path).unwrap();
    assert!(json(product, 0)["problem"].get("same").is_none());
    assert!(refusal("gemm 4x5x300 --layout tn --same --device sim").contains("give M = N"));
}

#[test]
fn a_reproducible_kernel_is_the_same_for_every_gpu() {
    for product in ["20x20x40000 --dtype f64 --layout tn", "9000x12x7 --dtype c128 --layout nn", "64x64x64"] {
        let on = |gpu: &str| {
            let report =
                json(&format!("gemm {product} --reproducible --device sim:{gpu} --trials 1 --json"), 0);
            assert_eq!(report["check"]["passed"], true, "{product} on {gpu}");
            assert_eq!(report["kernel"]["chosen_by"], "rule");
            report["kernel"]["schedule"].clone()
        };
        assert_eq!(on("h200"), on("gtx980"), "{product}");
    }
    let refused =
        refusal("gemm 20x20x40000 --dtype f64 --layout tn --reproducible --allow-atomics --device sim");
    assert!(refused.contains("cannot be used with"), "{refused}");
    let three = "gemm 20x20x40000 --dtype c128 --layout cn --reproducible --allow-three-multiplications";
    let refused = refusal(three);
    assert!(refused.contains("cannot be used with"), "{refused}");
}

#[test]
fn short_sums_are_right_in_every_type() {
    for (at, k) in [0, 1, 2, 5, 31, 1000].into_iter().enumerate() {
        for (turn, (dtype, layout)) in
            [("f64", "tn"), ("f32", "tn"), ("c128", "cn"), ("c64", "tn")].into_iter().enumerate()
        {
            let (m, n) = [(1, 1), (3, 2), (1, 3), (2, 2)][(at + turn) % 4];
            let beta = if at % 2 == 0 { 0 } else { 2 };
            let report = json(
                &format!(
                    "gemm {m}x{n}x{k} --kernel tsmttsm --dtype {dtype} --layout {layout} --beta {beta} --device sim --trials 1 --json"
                ),
                0,
            );
            assert_eq!(report["check"]["passed"], true, "{m}x{n}x{k} {dtype}");
            let launches = report["kernel"]["launches"].as_array().unwrap().len();
            assert!(k > 32 || launches == 1, "{m}x{n}x{k} {dtype} takes {launches} launches");
        }
    }
}

#[test]
fn the_context_is_left_alone_where_that_is_asked_for() {
    let product = "4x4x33514070 --dtype f64 --layout tn --lda 8 --ldb 8";
    let tuned = |options: &str| {
        json(&format!("tune {product} --param unit=fma --device sim:h200 --json {options}"), 0)
    };
    let [usual, kept] = ["", "--keep-context"].map(tuned);
    assert_eq!(usual["best"][0]["parameters"]["granularity"], 32, "half as many bytes are read");
    assert_eq!(kept["best"][0]["parameters"]["granularity"], 64);
    assert!(usual["candidates"].as_u64().unwrap() > kept["candidates"].as_u64().unwrap());
    // What ships for this GPU is found again.
    let explained = json(&format!("explain {product} --gpu h200 --json"), 0);
    assert_eq!(explained["kernel"]["parameters"]["granularity"], 32, "{}", explained["kernel"]);
}

#[test]
fn three_multiplications_are_used_where_they_are_asked_for() {
    let product = "24x20x5000 --dtype c128 --layout cn --device sim --json";
    let report = json(&format!("gemm {product} --trials 1 --param unit=mma,numbers=three"), 0);
    assert_eq!(report["kernel"]["parameters"]["numbers"], "three");
    assert_eq!(report["kernel"]["deterministic"], true);
    assert_eq!(report["check"]["passed"], true);
    for options in ["", "--allow-atomics", "--param unit=mma"] {
        let report = json(&format!("gemm {product} --trials 1 {options}"), 0);
        assert_eq!(report["check"]["passed"], true, "{options}");
        assert_ne!(report["kernel"]["parameters"]["numbers"], "three", "{options}");
    }
    // They are less work, so where work is what takes the time they are the fastest by the model.
    let tuned = |options: &str| {
        json(
            &format!(
                "tune 128x128x1000000 --dtype c128 --layout cn --param unit=mma --device sim --json {options}"
            ),
            0,
        )
    };
    let (usual, permitted) = (tuned(""), tuned("--allow-three-multiplications"));
    assert_eq!(permitted["best"][0]["parameters"]["numbers"], "three");
    assert!(!usual["best"].to_string().contains("three"));
    assert!(permitted["candidates"].as_u64().unwrap() > usual["candidates"].as_u64().unwrap());
    let refused = refusal(&format!("gemm {product} --param unit=mma,numbers=two"));
    assert!(refused.contains("try one of parts, whole, three"), "{refused}");
    let shown = json("show tsmttsm --size 9x9x500 --dtype c128 --layout cn --param numbers=three --json", 0);
    assert!(shown.to_string().contains("c128_cn_m9_n9_three"), "{shown}");
}

#[test]
fn numbers_are_split_where_sums_are_long_or_it_is_asked_for() {
    let long = "40x57x2000 --dtype f32 --layout tn --device sim --json";
    let short = "2000x57x14 --dtype f32 --device sim --json";
    for product in
        [format!("{long} --param unit=mma"), format!("{short} --param unit=mma --param numbers=split")]
    {
        let report = json(&format!("gemm {product} --trials 1"), 0);
        assert_eq!(report["kernel"]["parameters"]["numbers"], "split");
        assert_eq!(report["kernel"]["deterministic"], true);
        assert_eq!(report["check"]["passed"], true);
    }
    for options in ["", "--allow-three-multiplications", "--reproducible"] {
        let report = json(&format!("gemm {short} --trials 1 {options}"), 0);
        assert_eq!(report["kernel"]["parameters"]["unit"], "fma", "{options}");
    }
    let report = json(&format!("gemm {long} --trials 1 --reproducible"), 0);
    assert_eq!(report["kernel"]["parameters"]["unit"], "fma");
    let refused = refusal(&format!("gemm {short} --param unit=mma"));
    assert!(refused.contains("add numbers=split, or permit it"), "{refused}");
    let shown =
        json("show tsmttsm --size 9x9x500 --layout tn --param unit=mma,depth=64,wk=4 --stage cuda --json", 0);
    // Each product is one of three, and matrix units begin anew with each group of rows.
    let calls = |of: &str| shown.to_string().matches(of).count();
    let of_parts = ["(rest, a1, b0)", "(rest, a0, b1)", "(sum, a0, b0)"];
    assert_eq!(of_parts.map(|operands| calls(&format!("mma_m16n8k8_tf32{operands}"))), [1; 3], "{shown}");
    // And where some number was infinite, once more.
    assert_eq!(calls("__any_sync("), 1, "{shown}");
    assert_eq!(calls("add_parts(mine, mine_sum, mine_rest);"), 2, "{shown}");
}

#[test]
fn atomics_are_used_where_they_are_asked_for() {
    let product = "gemm 8x8x5000 --dtype f64 --layout tn --device sim --trials 1 --json";
    for reduction in ["global", "local"] {
        let report = json(&format!("{product} --param staging=registers --param reduction={reduction}"), 0);
        assert_eq!(report["kernel"]["parameters"]["reduction"], reduction);
        assert_eq!(report["kernel"]["deterministic"], false);
        assert_eq!(report["check"]["passed"], true);
    }
    assert_eq!(json(product, 0)["kernel"]["deterministic"], true);
    assert_eq!(json(&format!("{product} --allow-atomics"), 0)["check"]["passed"], true);
    let ranked = |options: &str| {
        json(&format!("tune 8x8x5000 --dtype f64 --layout tn --param staging=registers --device sim --json {options}"), 0)["candidates"]
            .as_u64()
            .unwrap()
    };
    assert!(ranked("--allow-atomics") > ranked(""));
    let refused = refusal("gemm 8x8x5000 --dtype f64 --layout tn --device sim --param reduction=tree");
    assert!(refused.contains("try one of two-pass, global"), "{refused}");
}

#[test]
fn products_of_few_rows_are_checked_at_a_smaller_size_by_kernels_of_the_same_choice() {
    for (arguments, at) in [
        ("5x1000x4096", "5x360x4096"),
        ("16x4096x4096 --kernel tiled --param unit=mma --param parts=2 --param columns=64", "16x256x4096"),
        ("300x1000x2100 --kernel tiled --beta 0.5 --ldc 1003", "300x360x436"),
    ] {
        let product = format!("gemm {arguments} --device sim --trials 1 --json");
        let report = json(&product, 0);
        assert_eq!(report["kernel"]["family"], "tiled", "{product}");
        let exact = &report["check"]["exact"];
        assert_eq!((&exact["at"], &exact["passed"]), (&at.into(), &true.into()), "{product}");
        assert_eq!(report["check"]["passed"], true, "{product}");
    }
}
