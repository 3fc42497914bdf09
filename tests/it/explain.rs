//! `explain` as a user meets it, and what it says beside what the model counts.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use warpwright::bind::Binding;
use warpwright::compile::validated;
use warpwright::kernels::{self, Variant};
use warpwright::problem::Problem;
use warpwright_core::ir::{Stmt, print};
use warpwright_core::model::count::{self, Reuse};
use warpwright_core::model::sites::{self, Memory};
use warpwright_core::target;

use crate::cli::{json, refusal, warpwright};
use crate::conformance::nvrtc_is_here;

/// A directory of a test's own, which goes when this does.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let directory =
            std::env::temp_dir().join(format!("warpwright-explain-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Scratch(directory)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn explained(arguments: &str) -> Value {
    json(&format!("explain {arguments} --device sim:h200 --json"), 0)
}

fn text(arguments: &str) -> String {
    let output = warpwright(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name} is a list"))
}

/// The findings of this name.
fn findings<'a>(explained: &'a Value, name: &str) -> Vec<&'a Value> {
    list(explained, "findings").iter().filter(|f| f["name"] == name).collect()
}

const UNCOALESCED: &str = "Uncoalesced Global Accesses";
const CONFLICTS: &str = "Shared Memory Bank Conflicts";

#[test]
fn the_naive_kernels_load_of_a_is_uncoalesced_and_the_next_rungs_is_not() {
    let naive = explained("sgemm_naive");
    let loads: Vec<&Value> = findings(&naive, UNCOALESCED)
        .into_iter()
        .filter(|f| f["text"].as_str().unwrap().contains("load of"))
        .collect();
    let [finding] = loads[..] else { panic!("one load: {loads:?}") };
    assert!(finding["text"].as_str().unwrap().starts_with("the load of A takes 32.0 sectors"), "{finding}");
    assert_eq!(
        (&finding["value"], &finding["section"]),
        (&Value::from(32.0), &Value::from("Source Counters"))
    );
    // The place is a line of the program that is told.
    let line = finding["place"]["line"].as_u64().unwrap() as usize;
    let program = naive["kernel"]["program"].as_str().unwrap();
    assert_eq!(program.lines().nth(line - 1).unwrap().trim(), finding["place"]["statement"]);
    assert!(finding["place"]["statement"].as_str().unwrap().contains("* B["), "{finding}");
    // Neighbouring lanes are a row apart.
    let access =
        list(&naive["launches"][0], "accesses").iter().find(|a| a["line"] == line && a["buffer"] == "A");
    let lanes: Vec<i64> =
        access.unwrap()["lanes"].as_array().unwrap().iter().map(|l| l.as_i64().unwrap()).collect();
    assert!(lanes.windows(2).all(|w| w[1] - w[0] == 4 * 4096), "{lanes:?}");
    assert!(findings(&explained("sgemm_coalesced"), UNCOALESCED).is_empty());
    let text = text("explain 1 --device sim:h200");
    assert!(text.contains("lanes  0,  1  ▀▄··") && text.contains("32 sectors, of 32 bytes each"), "{text}");
}

/// The steps of rung 3 with A staged by columns: threads that copy a row store a column, all in one bank.
fn turned_tile() -> String {
    let steps = explained("sgemm_shared_memory")["kernel"]["schedule"].as_str().unwrap().to_string();
    let turned =
        steps.replace("compute_at(As, acc.ko)\n", "compute_at(As, acc.ko)\nstorage_order(As, c, r)\n");
    assert_ne!(steps, turned);
    turned
}

#[test]
fn bank_conflicts_are_found_and_padding_that_is_suggested_removes_them() {
    let scratch = Scratch::new("conflicts");
    let file = scratch.file("turned.sched", &turned_tile());
    let found = explained(&file);
    let stores: Vec<&Value> = findings(&found, CONFLICTS);
    let store = stores.iter().find(|f| f["text"].as_str().unwrap().starts_with("the store to As"));
    assert_eq!(store.expect("the store is found")["value"], 32.0);
    let padding = list(&found, "suggestions").iter().find(|s| s["text"] == "pad the rows of As by 1 element");
    let padding = padding.unwrap_or_else(|| panic!("padding is suggested: {}", found["suggestions"]));
    assert_eq!((&padding["reduces"], &padding["kind"]), (&Value::from("l1"), &Value::from("modelled")));
    let padded = scratch.file("padded.sched", padding["schedule"].as_str().unwrap());
    let left = explained(&padded);
    assert!(findings(&left, CONFLICTS).is_empty(), "{:?}", findings(&left, CONFLICTS));
    let seconds = |e: &Value| e["seconds"].as_f64().unwrap();
    assert_eq!(left["seconds"], padding["seconds"]);
    let gain = 1.0 - seconds(&left) / seconds(&found);
    assert!((gain - padding["gain"].as_f64().unwrap()).abs() < 1e-12 && gain > 0.0);
}

#[test]
fn the_limiter_is_told_in_a_sentence_and_stalls_have_names_and_add_up() {
    for (kernel, limiter, said) in [
        ("sgemm_naive", "l1", "bound by passes through first-level cache and shared memory: alone they take"),
        ("sgemm_coalesced", "issue", "bound by issue of instructions"),
        ("sgemm_turned_lanes", "arithmetic", "bound by multiply-adds"),
        ("4000000x16x16 --dtype f64", "memory", "bound by traffic with device memory"),
    ] {
        let found = explained(kernel);
        assert_eq!(found["limiter"], limiter, "{kernel}");
        let because = found["because"].as_str().unwrap();
        assert!(because.starts_with(said) && because.contains("(modelled)"), "{kernel}: {because}");
        let stalls = list(&found, "stalls");
        let shares: f64 = stalls.iter().map(|s| s["share"].as_f64().unwrap()).sum();
        // Shares of less than a thousandth are left out.
        assert!((0.99..1.000_001).contains(&shares), "{kernel}: {shares}");
        let of_limiter: f64 =
            stalls.iter().filter(|s| s["term"] == limiter).map(|s| s["share"].as_f64().unwrap()).sum();
        assert!((of_limiter - found["shares"][limiter].as_f64().unwrap()).abs() < 1e-2, "{kernel}");
        let busy = list(&found, "speed_of_light");
        assert_eq!(
            (&busy[0]["name"], &busy[1]["name"]),
            (&"Compute (SM) Throughput".into(), &"Memory Throughput".into())
        );
        assert!(busy.iter().all(|b| (0.0..=1.0).contains(&b["part"].as_f64().unwrap())), "{kernel}");
    }
    let [naive, waiting] =
        ["sgemm_naive", "sgemm_register_staging"].map(|k| explained(k)["stalls"][0]["name"].clone());
    assert_eq!(naive, "LG Throttle");
    assert_ne!(waiting, "LG Throttle");
}

#[test]
fn a_schedule_that_is_applied_builds_and_counts_what_was_announced() {
    let scratch = Scratch::new("apply");
    for kernel in
        ["sgemm_block_tiling_2d", "sgemm_compact_warps", "tvm_tiled", "dgemm_matrix_units --dtype f64"]
    {
        let found = explained(kernel);
        for suggestion in list(&found, "suggestions") {
            let asked = format!("explain {kernel} --device sim:h200 --apply {}", suggestion["number"]);
            let applied = json(&format!("{asked} --json"), 0);
            assert_eq!(applied["suggestion"], *suggestion);
            assert_eq!(applied["seconds"][0], found["seconds"]);
            // What is printed for people is a file with the schedule.
            let file = scratch.file("applied.sched", &text(&asked));
            let dtype = kernel.split_once(' ').map_or("", |(_, options)| options);
            let again = explained(&format!("{file} {dtype}"));
            assert_eq!(again["kernel"]["schedule"], suggestion["schedule"]);
            let counters: Vec<&Value> = list(&again, "launches").iter().map(|l| &l["counters"]).collect();
            let announced: Vec<&Value> = applied["counters"][1].as_array().unwrap().iter().collect();
            assert_eq!(counters, announced, "{kernel}: {}", suggestion["text"]);
            assert_eq!(again["seconds"], suggestion["seconds"]);
            assert!(suggestion["gain"].as_f64().unwrap() >= 0.01);
            assert!(list(suggestion, "steps").iter().all(|s| s.as_str().unwrap().starts_with(['+', '-'])));
        }
    }
}

#[test]
fn what_is_suggested_for_a_family_is_other_parameters_of_it() {
    let asked = "tsmm --size 1000000x8x8 --dtype f64";
    let found = explained(asked);
    let suggestion = &list(&found, "suggestions")[0];
    assert_eq!(suggestion["idea"], "parameter");
    let applied = text(&format!("explain {asked} --device sim:h200 --apply 1"));
    let parameters =
        applied.lines().find_map(|l| l.strip_prefix("# a kernel of a family: ")).expect("the parameters");
    let again = explained(&format!("{asked} {parameters}"));
    assert_eq!(again["seconds"], suggestion["seconds"]);
    assert_eq!(again["kernel"]["schedule"], suggestion["schedule"]);
}

#[test]
fn the_kernel_that_padded_rows_get_is_explained() {
    let asked = "2000000x32x32 --dtype c64";
    let (dense, padded) = (explained(asked), explained(&format!("{asked} --lda 33 --ldc 33")));
    assert_eq!(padded["problem"]["row_strides"].as_array().unwrap().len(), 3);
    assert!(dense["kernel"]["parameters"]["copy"].is_string(), "dense rows are copied as one");
    assert!(padded["kernel"]["parameters"].get("copy").is_none(), "padded ones cannot be");
    let added = text("explain 40x40x4000000 --layout tn --alpha=-1 --beta 1 --lda 41 --device sim:h200");
    assert!(added.contains("40x40x4000000 f32 tn alpha -1 beta 1 ld 41,40,40 on h200"), "{added}");
    assert!(
        text("explain sgemm_naive --lda 5000 --device sim:h200").contains("f32 nn ld 5000,4096,4096 on h200")
    );
}

#[test]
fn every_rung_is_explained_in_less_than_two_seconds() {
    for recipe in kernels::all() {
        let options = match recipe.family {
            "hgemm" if recipe.name.contains("warpgroups") => "--dtype bf16 --layout nt",
            "hgemm" => "--dtype bf16",
            "dgemm" => "--dtype f64",
            _ => "",
        };
        let begun = Instant::now();
        let found = explained(&format!("{} {options}", recipe.name));
        // A machine that others use too is slower, and so is what is not optimised.
        let most = Duration::from_secs(if cfg!(debug_assertions) { 6 } else { 2 });
        assert!(begun.elapsed() < most, "{}: {:?}", recipe.name, begun.elapsed());
        assert!(found["edits_tried"].as_u64().unwrap() <= 40);
        assert!(list(&found, "suggestions").len() <= 8);
        let seconds = found["seconds"].as_f64().unwrap();
        assert!(seconds >= found["roofline"]["seconds"].as_f64().unwrap() * 0.5, "{}", recipe.name);
        // Every kind of number says what it is.
        assert_eq!((&found["kind"], &found["measured"]), (&Value::from("modelled"), &Value::Null));
        let launch = &found["launches"][0];
        assert_eq!(
            (&launch["counters"]["kind"], &launch["occupancy"]["kind"]),
            (&"modelled".into(), &"modelled".into())
        );
    }
}

#[test]
fn instructions_are_counted_where_compiler_and_disassembler_are() {
    if !nvrtc_is_here() || warpwright_cuda::locate::disassembler().is_none() {
        return;
    }
    let found = explained("sgemm_block_tiling_2d --sass");
    let [machine] = list(&found, "machine_code") else { panic!("one launch: {found}") };
    assert_eq!(machine["kind"], "compiled");
    assert_eq!((&machine["part"], &machine["mix"][0]["name"]), (&"loop".into(), &"multiply-adds".into()));
    // A thread's tile of 8 x 8 for each of 8 terms.
    assert_eq!(machine["mix"][0]["count"], 512, "{machine}");
    let launch = &found["launches"][0];
    assert_eq!(
        (&launch["registers"], &launch["registers_estimated"]),
        (&machine["registers"], &Value::from(false))
    );
    let parts: f64 = list(machine, "mix").iter().map(|g| g["part"].as_f64().unwrap()).sum();
    assert!((parts - 1.0).abs() < 1e-9);
    assert_eq!(explained("sgemm_block_tiling_2d")["machine_code"], Value::Null);
}

#[test]
fn a_page_needs_nothing_from_elsewhere_and_shows_every_picture() {
    let scratch = Scratch::new("page");
    for (kernel, pictures) in
        [("sgemm_block_tiling_2d", 2), ("sgemm_naive", 1), ("64x64x4000000 --dtype f64 --layout tn", 1)]
    {
        let page = scratch.0.join("page.html");
        text(&format!("explain {kernel} --device sim:h200 --html {}", page.display()));
        let html = fs::read_to_string(&page).unwrap();
        assert!(html.len() < 2 << 20, "{} bytes", html.len());
        for foreign in ["http", "<script", "<link", "@import", "url(", "src="] {
            assert!(!html.contains(foreign), "{kernel}: {foreign}");
        }
        assert!(
            html.matches("banks of shared memory</text>").count()
                + html.matches("sectors of device memory</text>").count()
                >= pictures
        );
        for part in [
            "Roofline",
            "Stalls",
            "Findings",
            "warps per multiprocessor over registers",
            "prefers-color-scheme:dark",
            "modelled",
        ] {
            assert!(html.contains(part), "{kernel}: {part}");
        }
        // Lines that findings name can be jumped to.
        let jumps = html.matches("href=\"#line").count();
        assert!(jumps >= 1 && html.matches("<mark id=\"line").count() >= 1, "{kernel}: {jumps}");
        assert!(!html.contains("NaN") && !html.contains("inf"), "{kernel}");
    }
}

#[test]
fn wrong_use_is_refused_with_what_to_do_and_nothing_is_written() {
    let scratch = Scratch::new("refused");
    let page = scratch.0.join("page.html").display().to_string();
    for (arguments, said) in [
        ("nosuch", "there is no kernel `nosuch`"),
        ("5 --gpu voodoo2", "unknown GPU `voodoo2`; use one of"),
        ("12x34", "is not a problem size"),
        ("5 --size 12x34", "is not a problem size"),
        ("512x512x512 --size 12x34x56", "--size gives another"),
        ("512x512x512 --param tm=4", "--param tm has no meaning here"),
        ("5 --param tm=4", "no family of kernels"),
        ("tsmm", "give --size MxNxK"),
        ("5 --apply 99", "give a number from 1 to"),
        ("5 --apply 0", "there is no suggestion 0"),
        ("programs/sgemm_split_k.ww --apply 1", "there is no suggestion 1"),
        ("programs/scan_look_back.ww", "matrix product has the sizes M, N and K"),
        ("hgemm_wide_warpgroups --dtype bf16 --layout nt --gpu a100-80gb", "h"),
        ("5 --html /nosuch/page.html", "cannot be written"),
    ] {
        let refused = refusal(&format!("explain {arguments} --device sim:h200"));
        assert!(refused.contains(said), "{arguments}: {refused}");
    }
    refusal(&format!("explain nosuch --html {page}"));
    assert!(!PathBuf::from(page).exists());
}

#[test]
fn what_the_accesses_take_adds_up_to_what_is_counted() {
    for (name, dtype, layout) in [
        ("sgemm_naive", "f32", "nn"),
        ("sgemm_block_tiling_2d", "c64", "cn"),
        ("sgemm_warp_tiling", "f32", "nt"),
        ("sgemm_async_copies", "f32", "nn"),
        ("hgemm_cp_async", "bf16", "nn"),
        ("hgemm_warpgroups", "bf16", "nt"),
        ("dgemm_cp_async", "f64", "nn"),
    ] {
        let variant = Variant::new(dtype.parse().unwrap(), layout.parse().unwrap());
        let kernel = kernels::build(kernels::by_name(name).unwrap(), variant).unwrap();
        let valid = validated(kernel.program(), target::DEFAULT).unwrap();
        let problem = Problem::new("300x270x133".parse().unwrap(), variant.precision, variant.layout);
        let problem = if name == "hgemm_warpgroups" {
            Problem::new("304x272x136".parse().unwrap(), problem.precision, problem.layout)
        } else {
            problem
        };
        let binding = Binding::new(valid.program(), &problem, 8).unwrap();
        let value = |s: &_| binding.value(s);
        let counts = count::launches(valid.program(), &value, Reuse::AsCompiled).unwrap();
        let sites = sites::launches(valid.program(), &value).unwrap();
        assert_eq!(counts.len(), sites.len());
        let text = valid.program().to_string();
        for (counts, sites) in counts.iter().zip(&sites) {
            let sum = |memory: Memory, writes: bool, of: fn(&sites::Site) -> f64| -> f64 {
                sites.iter().filter(|s| s.memory == memory && s.writes == writes).map(of).sum()
            };
            for (memory, writes, requests, passes) in [
                (Memory::Device, false, counts.global_load_requests, counts.global_load_sectors),
                (Memory::Device, true, counts.global_store_requests, counts.global_store_sectors),
                (Memory::Shared, false, counts.shared_load_requests, counts.shared_load_wavefronts),
                (Memory::Shared, true, counts.shared_store_requests, counts.shared_store_wavefronts),
            ] {
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.max(1.0);
                assert!(close(sum(memory, writes, |s| s.requests), requests), "{name} {memory:?} {writes}");
                assert!(close(sum(memory, writes, |s| s.passes), passes), "{name} {memory:?} {writes}");
            }
            for site in sites {
                assert!(site.least <= site.passes * (1.0 + 1e-9), "{name}: {site:?}");
                assert!(
                    site.wanted <= 32.0 * site.passes || site.memory == Memory::Shared,
                    "{name}: {site:?}"
                );
                assert_eq!(text.lines().nth(site.line - 1).unwrap().trim(), site.statement);
                assert!(site.statement.contains(&site.buffer), "{name}: {site:?}");
            }
        }
    }
}

#[test]
fn statements_begin_on_the_lines_on_which_they_are_said_to() {
    for name in ["sgemm_naive", "sgemm_warp_tiling", "sgemm_async_copies"] {
        let variant = Variant::new("f32".parse().unwrap(), "nn".parse().unwrap());
        let kernel = kernels::build(kernels::by_name(name).unwrap(), variant).unwrap();
        let valid = validated(kernel.program(), target::DEFAULT).unwrap();
        let text = valid.program().to_string();
        let lines: Vec<&str> = text.lines().collect();
        for (stmt, line) in print::lines(valid.program()) {
            let begins = match stmt {
                Stmt::For(_) => "for ",
                Stmt::If(_) => "if ",
                Stmt::Alloc(_) => "alloc ",
                Stmt::Sync(_) | Stmt::Instruction(_) => "",
                Stmt::Assign(a) => a.target.buffer.name(),
                _ => continue,
            };
            assert!(lines[line - 1].trim().starts_with(begins), "{name}: line {line}: {}", lines[line - 1]);
        }
    }
}
