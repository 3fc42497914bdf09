//! `predict` as a user meets it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json as value};
use warpwright_core::target;

use crate::cli::{json, refusal, warpwright};

/// The paper's mapping of A^T B, with all its options.
const MAPPING: &str = "predict 64x64x4000000 --dtype f64 --family tsmttsm \
                       --param tm=8,tn=8,transposed=false,leapfrog=true,block=128,reduction=global";

#[test]
fn a_prediction_says_its_time_what_it_is_made_of_and_what_limits_it() {
    let found = json(&format!("{MAPPING} --gpu h200 --json"), 0);
    assert_eq!((&found["kind"], &found["gpu"]), (&Value::from("modelled"), &Value::from("h200")));
    assert_eq!([&found["problem"]["m"], &found["problem"]["k"]], [64, 4_000_000]);
    assert_eq!(found["problem"]["layout"], "tn", "what the family takes");
    let kernel = &found["kernel"];
    assert_eq!((&kernel["family"], &kernel["parameters"]["tm"]), (&Value::from("tsmttsm"), &Value::from(8)));
    assert_eq!(kernel["parameters"]["staging"], "registers", "completed");
    let given: Vec<&str> = kernel["given"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    assert_eq!(given, ["block", "leapfrog", "reduction", "tm", "tn", "transposed"]);
    let terms = found["terms"].as_object().unwrap();
    let (limiter, seconds) = (found["limiter"].as_str().unwrap(), found["seconds"].as_f64().unwrap());
    let term = |name: &str| terms[name].as_f64().unwrap();
    assert!(terms.keys().all(|name| term(name) <= term(limiter)) && term(limiter) <= seconds);
    // 2 x 64 x 4e6 x 8 bytes at 4552 GB/s, which is what an H200 was measured to read.
    let roofline = found["roofline"]["seconds"].as_f64().unwrap();
    assert!((roofline - 128.0 * 4e6 * 8.0 / 4552e9).abs() < 1e-6, "{roofline}");
}

#[test]
fn every_mapping_option_of_the_papers_families_is_a_parameter() {
    for reduction in ["global", "local", "two-pass"] {
        let asked = format!(
            "predict 8x8x1000000 --dtype c128 --family tsmttsm --param tm=4,tn=2,transposed=true,leapfrog=false \
             --param block=256,reduction={reduction} --json"
        );
        assert_eq!(json(&asked, 0)["kernel"]["parameters"]["reduction"], reduction);
    }
    let mut seconds = Vec::new();
    for source in ["registers", "l1", "shared"] {
        let asked = format!(
            "predict 1000000x8x8 --dtype f64 --param threads=4,unroll=2,c_source={source},block=128 --json"
        );
        let found = json(&asked, 0);
        assert_eq!(
            (&found["kernel"]["family"], &found["kernel"]["given"][1]),
            (&"tsmm".into(), &"c_source".into())
        );
        seconds.push(found["seconds"].as_f64().unwrap());
    }
    assert!(seconds[0] < seconds[2], "what is in registers is not read again: {seconds:?}");
}

#[test]
fn people_read_one_table_in_which_every_number_is_called_modelled() {
    let output = warpwright(&format!("{MAPPING} --gpu a100-80gb"));
    let text = String::from_utf8(output.stdout).unwrap();
    for line in
        text.lines().filter(|l| ["time", "roofline", "limiter"].iter().any(|w| l.trim().starts_with(w)))
    {
        assert!(line.contains("modelled"), "{line}");
    }
    assert!(text.contains("alone (modelled)") && text.contains("limiter    bound by "), "{text}");
    assert!(
        text.contains("given      block=128 leapfrog=true reduction=global tm=8 tn=8 transposed=false"),
        "{text}"
    );
}

#[test]
fn gpus_stand_side_by_side_each_with_parameters_that_suit_it() {
    let found = json("predict 20000000x16x16 --dtype f64 --compare h200,a100-80gb,l4 --json", 0);
    let found = found.as_array().unwrap();
    assert_eq!(
        found.iter().map(|p| p["gpu"].as_str().unwrap()).collect::<Vec<_>>(),
        ["h200", "a100-80gb", "l4"]
    );
    let seconds: Vec<f64> = found.iter().map(|p| p["seconds"].as_f64().unwrap()).collect();
    assert!(seconds.is_sorted(), "{seconds:?}");
    assert_ne!(found[0]["kernel"]["parameters"]["blocks"], found[1]["kernel"]["parameters"]["blocks"]);
    let all: Vec<&str> = target::ALL.iter().map(|t| t.name).collect();
    let every = json(&format!("predict 64x64x4000000 --layout tn --compare {} --json", all.join(",")), 0);
    assert_eq!(every.as_array().unwrap().len(), all.len());
    let text =
        String::from_utf8(warpwright("predict 1000000x8x8 --dtype f64 --compare h200,l4").stdout).unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
}

#[test]
fn rows_may_be_padded_and_matrices_may_start_anywhere() {
    let asked = "predict 21459009x24x24 --gpu h200";
    let bytes = |places: &str| {
        let found = json(&format!("{asked} {places} --json"), 0);
        (found["problem"].clone(), found["roofline"]["seconds"].as_f64().unwrap())
    };
    let ((dense, at_least), (padded, longer)) = (bytes(""), bytes("--lda 25 --ldc 25"));
    assert!(dense.get("row_strides").is_none() && dense.get("offset").is_none(), "{dense}");
    assert_eq!(padded["row_strides"], value!([25, 24, 25]));
    // Rows of 96 bytes that stand 100 apart touch 4 sectors of 32 bytes more often than not: 25 bytes for 24 in the mean.
    assert!((longer / at_least - 25.0 / 24.0).abs() < 1e-3, "{longer} {at_least}");
    let text = String::from_utf8(warpwright(&format!("{asked} --offset 1,2,3")).stdout).unwrap();
    assert!(text.starts_with("tsmm 21459009x24x24 f32 nn offset 1,2,3 on h200\n"), "{text}");
    assert!(!text.contains("copy=bulk"), "no bulk copy begins at any element: {text}");
}

#[test]
fn a_gpu_for_which_a_family_has_no_kernel_gets_one_of_a_ladder() {
    let asked = "predict 16x4096x4096 --dtype bf16 --json";
    let of = |found: &Value| found["kernel"]["family"].as_str().unwrap().to_string();
    assert_eq!(of(&json(&format!("{asked} --gpu h200"), 0)), "tiled");
    assert_eq!(of(&json(&format!("{asked} --gpu v100-sxm2"), 0)), "sgemm");
    let both = json(&format!("{asked} --compare h200,v100-sxm2"), 0);
    assert_eq!([&both[0], &both[1]].map(of), ["tiled", "sgemm"]);
    assert!(
        refusal("predict 16x4096x4096 --dtype bf16 --family tiled --gpu v100-sxm2").contains("does not have")
    );
}

#[test]
fn a_time_that_is_impossible_is_called_wrong() {
    // What was fitted on a GPU with many f64 pipes promises too much for one with few.
    let asked = "predict 1000000x8x8 --dtype f64";
    let found = json(&format!("{asked} --compare gtx980,h200 --json"), 0);
    assert_eq!([&found[0]["below_roofline"], &found[1]["below_roofline"]], [true, false]);
    let text = |arguments: &str| String::from_utf8(warpwright(arguments).stdout).unwrap();
    assert!(text(&format!("{asked} --gpu gtx980")).contains("impossible: the model is wrong here"));
    assert!(
        text(&format!("{asked} --compare gtx980,h200"))
            .ends_with("! less than is possible: the model is wrong here\n")
    );
    assert!(!text(&format!("{asked} --compare h200,l4")).contains('!'));
    // Split numbers are not multiplied as the roofline has it.
    let split = "numbers=split,copy=bulk,release=warps,wm=2,wn=2,wk=2,depth=16";
    let split = json(&format!("predict 128x128x4000000 --family tsmttsm --param {split} --json"), 0);
    let (time, roofline) = (split["seconds"].as_f64(), split["roofline"]["seconds"].as_f64());
    assert!(time < roofline && split["below_roofline"] == false, "{time:?} {roofline:?}");
}

#[test]
fn wrong_use_is_refused_with_what_to_do() {
    for (arguments, said) in [
        ("64x64x4000000 --gpu voodoo2 --family tsmttsm", "use one of gtx980"),
        ("64x64x4000000 --compare h200,voodoo2 --family tsmttsm", "unknown GPU `voodoo2`"),
        ("64x64x4000000 --compare h200 --gpu h200", "--compare"),
        (
            "64x64x4000000 --compare h200,gtx980 --dtype f64 --family tsmttsm --param unit=mma",
            "error: gtx980: unit=mma",
        ),
        ("64x64x4000000 --family cholesky", "use one of tsmttsm, tsmm"),
        ("64x64x4000000 --family tsmttsm --param tq=3", "no parameter `tq`; use one of unit"),
        (
            "64x64x4000000 --family tsmttsm --dtype f64 --param tm=64",
            "do not fit in 255 registers; change tm",
        ),
        ("64x64x4000000 --family tsmttsm --param reduction=sideways", "try one of two-pass"),
        ("64x64x4000000 --family tsmttsm --param leapfrog=maybe", "leapfrog=maybe is no choice"),
        ("200x200x4000000 --family tsmttsm", "1 to 128 rows and columns"),
        ("64x64x4000000 --family tsmttsm --layout nn", "use --layout tn"),
        ("512x512x512 --param tm=4", "families with parameters"),
        ("64x64 --family tsmttsm", "write MxNxK"),
        ("64x64x9223372036854775807 --family tsmttsm", "choose a smaller size"),
        ("--family tsmttsm", "MxNxK"),
        ("64x64x64 --batch rows.csv", "--batch"),
        ("--batch rows.csv --lda 30", "--lda"),
        ("1000000x24x24 --lda 23", "--lda 23 is too short"),
        ("1000000x24x24 --offset 1,0", "three whole numbers"),
    ] {
        let refused = refusal(&format!("predict {arguments}"));
        assert!(refused.contains(said), "{arguments}: {refused}");
    }
}

/// A table of questions in a directory of its own, which goes when this does.
struct Batch(PathBuf);

impl Batch {
    fn new(name: &str) -> Batch {
        let directory = std::env::temp_dir().join(format!("warpwright-batch-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Batch(directory)
    }

    fn file(&self, text: &str) -> PathBuf {
        let file = self.0.join("rows.csv");
        fs::write(&file, text).unwrap();
        file
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_batch_is_answered_row_by_row_as_each_would_be_alone() {
    let batch = Batch::new("rows");
    let rows = "gpu,family,m,n,k,dtype,tm,tn,threads,reduction\r\n\
                h200,tsmttsm,64,64,4000000,f64,8,4,,two-pass\r\n\
                l4,tsmm,4000000,16,16,f32,,,4,\r\n\
                # a pause\r\n\
                a100-80gb,,4000000,16,16,c64,,,,\r\n";
    let file = batch.file(rows);
    let found = json(&format!("predict --batch {} --json", file.display()), 0);
    let found = found.as_array().unwrap();
    let alone = [
        "64x64x4000000 --dtype f64 --gpu h200 --family tsmttsm --param tm=8,tn=4,reduction=two-pass",
        "4000000x16x16 --dtype f32 --gpu l4 --family tsmm --param threads=4",
        "4000000x16x16 --dtype c64 --gpu a100-80gb",
    ];
    assert_eq!(found.len(), alone.len());
    for (found, alone) in found.iter().zip(alone) {
        assert_eq!(found, &json(&format!("predict {alone} --json"), 0), "{alone}");
    }
    let text = String::from_utf8(warpwright(&format!("predict --batch {}", file.display())).stdout).unwrap();
    assert_eq!(text.lines().count(), 5, "{text}");
}

#[test]
fn a_bad_row_or_column_is_named_and_nothing_is_answered() {
    let batch = Batch::new("bad");
    let head = "gpu,family,m,n,k,dtype,tm\nh200,tsmttsm,64,64,4000000,f64,8\n";
    for (rows, said) in [
        ("voodoo2,tsmttsm,64,64,4000000,f64,", "line 3: column gpu: unknown GPU `voodoo2`"),
        (",tsmttsm,64,64,4000000,f64,", "line 3: column gpu: the cell is empty"),
        ("h200,cholesky,64,64,4000000,f64,", "line 3: column family: there is no family"),
        ("h200,tsmttsm,many,64,4000000,f64,", "line 3: column m: `many` cannot be read"),
        ("h200,tsmttsm,64,-1,4000000,f64,", "line 3: column n: -1 is negative"),
        ("h200,tsmttsm,64,64,1e6,f64,", "line 3: column k: `1e6` cannot be read"),
        (
            "h200,tsmttsm,64,64,4000000,f63,",
            "line 3: column dtype: `f63` cannot be read, because unknown element type",
        ),
        ("h200,tsmttsm,64,64,4000000,f64,64", "line 3: tsmttsm cannot be made with tm=64"),
        ("h200,tsmttsm,64,64,4000000,f64,wide", "line 3: tm=wide is no choice"),
        ("h200,tsmttsm,64,64,4000000,f64", "line 3: the row has 6 cells"),
        ("h200,tsmttsm,64,64,4000000,f64,8,9", "line 3: the row has 8 cells"),
        ("h200,tsmttsm,64,64,4000000,\"f64,8", "line 3: a quotation mark is not closed"),
    ] {
        let file = batch.file(&format!("{head}{rows}\n"));
        for json in ["", " --json"] {
            let refused = refusal(&format!("predict --batch {}{json}", file.display()));
            assert!(refused.contains(&format!("rows.csv: {said}")), "{rows}: {refused}");
        }
    }
    for (text, said) in [
        ("gpu,family,m,n,k,dtype,colour\n", "column colour"),
        ("gpu,family,m,n,dtype\n", "no column `k`"),
        ("gpu,family,m,n,k,k,dtype\n", "two columns `k`"),
        ("", "no row of headings"),
        (
            "gpu,family,m,n,k,dtype,threads\nh200,tsmttsm,8,8,1000000,f64,4\n",
            "line 2: column threads: tsmttsm has no such parameter",
        ),
    ] {
        let refused = refusal(&format!("predict --batch {} --json", batch.file(text).display()));
        assert!(refused.contains(said), "{text}: {refused}");
    }
    let missing = refusal(&format!("predict --batch {}", batch.0.join("row.csv").display()));
    assert!(missing.contains("cannot be read") && missing.contains("rows.csv, which is there"), "{missing}");
}

#[test]
fn a_thousand_rows_are_answered_in_no_time() {
    let batch = Batch::new("many");
    let row = |i: usize| format!("h200,tsmttsm,{},{},1000000,f64\n", i % 128 + 1, i % 97 + 1);
    let file = batch.file(&format!("gpu,family,m,n,k,dtype\n{}", (0..1000).map(row).collect::<String>()));
    let begun = std::time::Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(["predict", "--json", "--batch"])
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // 1 ms each is the promise; a debug build takes longer.
    let most = if cfg!(debug_assertions) { 20.0 } else { 2.0 };
    assert!(begun.elapsed().as_secs_f64() < most, "{:?}", begun.elapsed());
}

#[test]
fn validate_model_says_how_true_the_model_is_and_of_what_it_cannot_speak() {
    let found = json("validate-model --json", 0);
    let tables = found["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 12);
    for table in tables {
        for field in ["file", "gpu", "source", "licence", "fit", "fit_because"] {
            assert!(table[field].is_string(), "{field} of {}", table["file"]);
        }
        assert!(table["summary"]["mean_absolute_error_percent"].as_f64().unwrap() > 0.0);
        assert!(table["summary"]["geometric_bias"].as_f64().unwrap() > 0.0);
    }
    let group = &tables[0]["groups"][0];
    for first in ["1", "10", "50"] {
        assert!(group["ranking"]["best_of"][first].as_f64().unwrap() >= 1.0);
    }
    assert!(group["ranking"]["spearman"].is_number() && group["ranking"]["kendall_tau_b"].is_number());
    let mappings = tables[2]["points"].as_array().unwrap();
    assert_eq!(mappings.len(), 47);
    let refused: Vec<_> = mappings.iter().filter(|p| p["modelled"].is_null()).collect();
    assert!(!refused.is_empty() && refused.iter().all(|p| p["because"].is_string()));
    assert!(found["not_covered"].as_array().unwrap().iter().all(|t| t["because"].is_string()));
    let text = |arguments: &str| String::from_utf8(warpwright(arguments).stdout).unwrap();
    let (summary, whole) = (text("validate-model --summary"), text("validate-model"));
    assert!(whole.starts_with(summary.trim_end()) && whole.contains("not compared, because"), "{whole}");
    assert!(refusal("validate-model --summary --json").contains("--summary"));
}

#[test]
fn a_kernel_that_is_no_choice_of_a_family_is_predicted_by_what_it_does() {
    let found = json("predict 4096x4096x4096 --schedule sgemm_naive --gpu h200 --json", 0);
    assert_eq!((&found["kind"], &found["limiter"]), (&"modelled".into(), &"l1".into()));
    assert_eq!(found["kernel"]["family"], "sgemm");
    let (terms, shares) = (found["terms"].as_object().unwrap(), found["shares"].as_object().unwrap());
    assert!(terms.len() == 7 && terms.keys().eq(shares.keys()));
    assert!((shares.values().map(|s| s.as_f64().unwrap()).sum::<f64>() - 1.0).abs() < 1e-9);
    // Measured on an H200: 276 ms (bench/results).
    let seconds = found["seconds"].as_f64().unwrap();
    assert!((0.22..0.33).contains(&seconds), "{seconds}");
    assert_eq!(found["launches"][0]["blocks"], 16384.0);
    // A file, and the kernel that a product gets which no family suits.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/validation/sgemm_extra_column_of_5.sch");
    let of_file = json(&format!("predict 4096x4096x4096 --schedule {file} --json"), 0);
    assert_eq!(of_file["kernel"]["family"], "schedule");
    let chosen = json("predict 4096x4096x4096 --dtype f64 --json", 0);
    assert!(chosen["kernel"]["name"].as_str().is_some_and(|name| !name.is_empty()));
    let several =
        json("predict 512x512x512 --schedule sgemm_warp_tiling --compare h200,a6000,gtx980 --json", 0);
    let gpus: Vec<&str> = several.as_array().unwrap().iter().map(|p| p["gpu"].as_str().unwrap()).collect();
    assert_eq!(gpus, ["h200", "a6000", "gtx980"]);
    let text =
        String::from_utf8(warpwright("predict 512x512x512 --schedule sgemm_warp_tiling").stdout).unwrap();
    assert!(text.contains("share (modelled)") && text.contains("registers (estimated)"), "{text}");
}

#[test]
fn a_kernel_that_cannot_be_predicted_is_refused() {
    for (asked, said) in [
        ("predict 64x64x64 --schedule sgemm_best", "there is no kernel `sgemm_best`"),
        ("predict 64x64x64 --schedule sgemm_async_copies --gpu v100-sxm2", "needs CpAsync"),
        ("predict 64x64x64 --schedule none.sch", "none.sch"),
        ("predict 64x64x64 --schedule sgemm_naive --family tsmm", "--family"),
        ("predict 64x64x64 --schedule hgemm_matrix_units --dtype bf16-f32 --gpu gtx980", "needs MmaBf16"),
    ] {
        let refused = refusal(asked);
        assert!(refused.contains(said), "{asked}: {refused}");
    }
}
