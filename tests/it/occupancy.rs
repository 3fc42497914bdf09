//! `occupancy` and `targets` as a user meets them, and GPUs of her own.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use warpwright_core::target;

use crate::cli::{json, refusal, warpwright};

/// The example of the command's description.
const EXAMPLE: &str =
    "occupancy --gpu h200 --threads 256 --registers 64 --shared-static 1024 --shared-dynamic 32768";

fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("warpwright-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn text(arguments: &str) -> String {
    let output = warpwright(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn occupancy_says_how_many_blocks_there_are_what_limits_them_and_what_helps() {
    let found = json(&format!("{EXAMPLE} --json"), 0);
    assert_eq!((&found["gpu"], &found["kind"]), (&Value::from("h200"), &Value::from("modelled")));
    assert_eq!([&found["blocks_per_sm"], &found["warps_per_sm"]], [4, 32]);
    assert_eq!((&found["occupancy"], &found["limiter"]), (&Value::from(0.5), &Value::from("registers")));
    let limits = &found["limits"];
    assert_eq!(
        ["warps", "registers", "shared_memory", "blocks", "barriers"].map(|l| limits[l].as_u64()),
        [8, 4, 6, 32, 64].map(Some)
    );
    assert_eq!(found["slack"]["registers"]["left"], 0);
    assert_eq!(found["slack"]["shared_memory"]["left"], (228 - 4 * 34) << 10);
    assert_eq!([&found["room"]["registers"], &found["room"]["shared_memory"]], [64, 56 << 10]);
    let change = &found["suggestions"][0]["changes"][0];
    assert_eq!((&change["what"], &change["to"]), (&Value::from("registers"), &Value::from(48)));
    assert_eq!(found["suggestions"][0]["blocks_per_sm"], 5);
    // 4552 GB/s for 735 cycles at 1980 MHz, of 132 multiprocessors and 1024 threads on each.
    let under_way = found["latency"]["bytes_in_flight_per_thread"].as_f64().unwrap();
    assert!((under_way - 12.5).abs() < 0.1, "{under_way}");
    let text = text(EXAMPLE);
    for said in [
        "resident 32 of 64 warps in 4 blocks: occupancy 50 %",
        "limit    registers",
        "step up  48 registers instead of 64: 5 blocks, 40 warps, 62.5 %",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn every_suggestion_of_the_command_can_be_asked_for() {
    for with in ["--registers 128 --shared-dynamic 102400", "--registers 33", "--registers 65 --carveout 10"]
    {
        let found = json(&format!("occupancy --gpu h200 --threads 512 {with} --json"), 0);
        for suggestion in found["suggestions"].as_array().unwrap() {
            let mut asked: Vec<(&str, Value)> = ["threads", "registers", "shared_memory", "carveout"]
                .map(|what| {
                    (what, found[if what == "shared_memory" { "shared_dynamic" } else { what }].clone())
                })
                .to_vec();
            for change in suggestion["changes"].as_array().unwrap() {
                let named = |(what, _): &&mut (&str, Value)| change["what"] == *what;
                asked.iter_mut().find(named).unwrap().1 = change["to"].clone();
            }
            let option = |(what, value): &(&str, Value)| match (*what, value) {
                (_, Value::Null) => String::new(),
                ("shared_memory", value) => format!("--shared-dynamic {value} "),
                (what, value) => format!("--{what} {value} "),
            };
            let options: String = asked.iter().map(option).collect();
            let then = json(&format!("occupancy --gpu h200 {options} --json"), 0);
            assert_eq!(then["warps_per_sm"], suggestion["warps_per_sm"], "{options}");
            assert!(then["warps_per_sm"].as_u64() > found["warps_per_sm"].as_u64());
        }
    }
}

#[test]
fn what_cannot_be_launched_is_an_answer() {
    let found = json("occupancy --gpu h200 --threads 1024 --registers 65 --json", 0);
    assert_eq!((&found["blocks_per_sm"], &found["limiter"]), (&Value::from(0), &Value::from("registers")));
    assert_eq!(found["occupancy"], 0.0);
    assert!(found["latency"]["bytes_in_flight_per_thread"].is_null());
    let found =
        json("occupancy --gpu h200 --threads 32 --registers 16 --shared-dynamic 49153 --no-opt-in --json", 0);
    assert_eq!(
        (&found["blocks_per_sm"], &found["limiter"]),
        (&Value::from(0), &Value::from("shared_memory"))
    );
}

#[test]
fn nonsense_is_wrong_use_and_names_the_field() {
    for (arguments, field) in [
        ("--threads 0 --registers 16", "--threads"),
        ("--threads 2000 --registers 16", "--threads"),
        ("--threads 99999999999 --registers 16", "--threads"),
        ("--threads=-1 --registers 16", "--threads"),
        ("--threads 32 --registers 300", "--registers"),
        ("--threads 32 --registers 16 --shared-dynamic 232449", "--shared-dynamic"),
        ("--threads 32 --registers 16 --shared-static 232449", "--shared-static"),
        ("--threads 32 --registers 16 --carveout 101", "--carveout"),
        ("--threads 32 --registers 16 --barriers 17", "--barriers"),
        ("--threads 32 --registers 16 --gpu voodoo2", "unknown GPU `voodoo2`"),
        ("--threads 32", "--registers"),
        ("sgemm_naive --threads 32", "--threads"),
        ("tsmttsm", "--size MxNxK"),
        ("sgemm_naive --size 3x3x3", "no family"),
        ("--threads 32 --registers 16 --size 3x3x3", "--size"),
    ] {
        let said = refusal(&format!("occupancy {arguments}"));
        assert!(said.contains(field), "{arguments}: {said}");
    }
    assert!(
        refusal("occupancy --threads 32 --registers 16 --gpu a6000 --shared-dynamic 101377")
            .contains("101376")
    );
}

#[test]
fn the_carve_out_can_be_given() {
    let blocks = |percent: u32| {
        let asked = "occupancy --gpu a100-80gb --threads 128 --registers 32 --shared-static 8192";
        json(&format!("{asked} --carveout {percent} --json"), 0)["blocks_per_sm"].as_u64()
    };
    // 9 KiB a block in 16, 64, 100 and 164 KiB.
    assert_eq!([5, 30, 50, 100].map(blocks), [1, 7, 11, 16].map(Some));
}

#[test]
fn curves_are_data_text_and_a_picture_with_todays_point() {
    let found = json(&format!("{EXAMPLE} --curves --json"), 0);
    for (axis, at, points) in [("threads", 256, 32), ("registers", 64, 255), ("shared_memory", 33792, 1817)] {
        let curve = &found["curves"][axis];
        assert_eq!((&curve["at"], curve["points"].as_array().unwrap().len()), (&Value::from(at), points));
        let here = curve["points"].as_array().unwrap().iter().find(|p| p["value"] == at).unwrap();
        assert_eq!(here["warps_per_sm"], found["warps_per_sm"], "{axis}");
    }
    let text = text(&format!("{EXAMPLE} --curves"));
    assert_eq!(text.matches("<- here").count(), 3, "{text}");
    assert!(text.contains("49 to 64"), "{text}");

    let directory = scratch("curves");
    let file = directory.join("curves.svg");
    json(&format!("{EXAMPLE} --svg {} --json", file.display()), 0);
    let svg = fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
    for marked in ["here: 32 at 256", "here: 32 at 64", "here: 32 at 33792"] {
        assert!(svg.contains(marked), "{marked}");
    }
    // What is refused writes nothing, and leaves what was there.
    refusal(&format!("occupancy --threads 2000 --registers 16 --svg {}", file.display()));
    assert_eq!(fs::read_to_string(&file).unwrap(), svg);
    let nowhere = directory.join("none").join("curves.svg");
    assert!(refusal(&format!("{EXAMPLE} --svg {}", nowhere.display())).contains("cannot be written"));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "nothing half written");
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn targets_lists_every_gpu_with_its_numbers_and_their_sources() {
    let listed = json("targets --json", 0);
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    let wanted = "gtx980 v100-pcie v100-sxm2 rtx2080ti a100-40gb a100-80gb rtx3090 a6000 rtx4090 l4 l40 h100-pcie \
                  h100-sxm h200 b200 rtx5090";
    assert_eq!(names.join(" "), wanted);
    for target in listed.as_array().unwrap() {
        for field in ["sm_count", "boost_mhz", "memory_bytes", "dram_bytes_per_second", "l2_bytes"] {
            let fact = &target[field];
            assert!(fact["value"].as_f64().unwrap() > 0.0, "{field}");
            assert_eq!(fact["source"].is_null(), fact["kind"] == "not_verified", "{field}: {fact}");
        }
        assert!(target["fma_per_cycle"]["f32"]["value"].as_u64().unwrap() >= 64);
        assert!(target["limits"]["source"].is_string());
        assert!(target["levels"]["dram"].get("latency_cycles").is_some(), "null where nobody measured it");
    }
    let h200 = json("targets H200 --json", 0);
    assert_eq!(h200["limits"]["shared_per_block_opt_in"], 232448);
    let (table, one) = (text("targets"), text("targets h200"));
    assert!(names.iter().all(|name| table.contains(name)));
    assert!(table.contains("16? ") && one.contains("measured: one H200") && one.contains("not verified"));
    assert!(refusal("targets voodoo2").contains("use one of gtx980"));
}

#[test]
fn targets_lists_the_limits_of_every_compute_capability() {
    let listed = json("targets --limits --json", 0);
    let listed = listed.as_array().unwrap();
    let named: Vec<&str> = listed.iter().map(|l| l["compute_capability"].as_str().unwrap()).collect();
    assert_eq!((named.first(), named.last(), named.len()), (Some(&"2.0"), Some(&"12.1"), 28));
    for limits in listed {
        for field in limits["not_verified"].as_array().unwrap() {
            assert!(!limits[field.as_str().unwrap()].is_null(), "{field} is a field of {limits}");
        }
    }
    let table = text("targets --limits");
    assert!(named.iter().all(|name| table.lines().any(|l| l.starts_with(&format!("{name} ")))), "{table}");
    assert!(table.lines().any(|l| l.starts_with("3.2") && l.contains("32768?")), "{table}");
    assert!(refusal("targets h200 --limits").contains("--limits"));
}

#[test]
fn a_gpu_of_ones_own_is_a_file() {
    let directory = scratch("own-gpu");
    let file = directory.join("mine.toml");
    let own = text("targets rtx3090 --toml").replacen("\"rtx3090\"", "\"mine\"", 1);
    fs::write(&file, &own).unwrap();
    let numbers = "--threads 256 --registers 40 --json";
    let found = json(&format!("occupancy --gpu {} {numbers}", file.display()), 0);
    assert_eq!(found["gpu"], "mine");
    assert_eq!(found["warps_per_sm"], json(&format!("occupancy --gpu rtx3090 {numbers}"), 0)["warps_per_sm"]);
    assert_eq!(json(&format!("targets {} --json", file.display()), 0)["sm_count"]["value"], 82);
    let product = json(&format!("gemm 33x17x29 --device sim:{} --json", file.display()), 0);
    assert_eq!(product["device"]["gpu"], "mine");

    let refused = |text: &[u8]| {
        fs::write(&file, text).unwrap();
        let said = refusal(&format!("occupancy --gpu {} {numbers}", file.display()));
        assert!(said.contains("mine.toml"), "{said}");
        said
    };
    let incomplete: String = own
        .lines()
        .filter(|l| !l.starts_with("sm_count") && !l.starts_with("l2_bytes"))
        .map(|l| format!("{l}\n"))
        .collect();
    assert!(refused(incomplete.as_bytes()).contains("lacks sm_count, l2_bytes"));
    assert!(refused(own.replace("sm_count = 82", "sm_count = \"82\"").as_bytes()).contains("sm_count"));
    assert!(refused(&own.as_bytes()[..own.len() / 2]).contains("mine.toml"), "cut in the middle");
    assert!(refused(b"\xff\xfe\x00nonsense").contains("name a text file in UTF-8"));
    assert!(refused(b"").contains("lacks name, compute_capability"));
    fs::remove_file(&file).unwrap();
    let missing = refusal(&format!("occupancy --gpu {} {numbers}", file.display()));
    assert!(missing.contains("cannot be read"), "{missing}");
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn every_gpu_of_the_tables_can_be_asked() {
    for target in target::ALL {
        let found = json(&format!("occupancy --gpu {} --threads 96 --registers 37 --json", target.name), 0);
        let warps = found["warps_per_sm"].as_f64().unwrap();
        let part = warps / f64::from(target.limits.warps_per_sm);
        assert_eq!(found["occupancy"].as_f64(), Some(part), "{}", target.name);
        assert!(warps > 0.0);
    }
}
