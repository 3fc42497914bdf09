//! The page of a ladder as a user makes it: with measured times of an earlier run, and from files that will not do.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::cli::{refusal, warpwright};

/// A directory of a test's own.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("warpwright-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/results").join(name)
}

#[test]
fn a_page_is_made_without_a_gpu_from_times_that_were_recorded_on_one() {
    let directory = Directory::new("ladder-page");
    let (page, file) = (directory.0.join("p.html"), recorded("sgemm-f32-nn-nvidia-h200-2026-11-21.json"));
    let start = Instant::now();
    let arguments = format!("ladder sgemm --html {} --measured {}", page.display(), file.display());
    let output = warpwright(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let seconds = start.elapsed().as_secs_f64();
    assert!(seconds < 120.0, "it takes {seconds:.0} s, where 10 s are usual");
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.len() < 2_000_000, "{} bytes", text.len());
    // The first and the fastest rung, as the file has them: 275.8 ms, and 53.80 TFLOP/s beside 51.45 of cuBLAS.
    for part in ["NVIDIA H200", "4096x4096x4096", "276 ms", "53.8 TFLOP/s", "51.4 TFLOP/s", "1.05"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(text.contains(&file.display().to_string()) && text.contains("2026-11-21"));
    assert!(text.contains("at 256x256x256, on the simulator"));
    assert_eq!(text.matches("<h2 id=\"rung").count(), 18);
}

#[test]
fn the_product_is_that_of_the_file_or_the_one_of_its_that_is_asked_for() {
    let directory = Directory::new("ladder-sizes");
    let (page, file) = (directory.0.join("p.html"), recorded("sgemm-nvidia-h200-2026-11-21.json"));
    let with = |more: &str| {
        let (page, file) = (page.display(), file.display());
        format!("ladder sgemm --rungs 1,2 --html {page} --measured {file} {more}")
    };
    for (more, product, rate) in
        [("", "4096x4096x4096", "498 GFLOP/s"), ("--size 2048", "2048x2048x2048", "487 GFLOP/s")]
    {
        assert_eq!(warpwright(&with(more)).status.code(), Some(0));
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains(&format!("C with {product}, f32")) && text.contains(rate), "{more}");
        assert!(text.contains("compiled, as recorded"), "that file has registers");
    }
    assert!(refusal(&with("--size 100")).contains("timed at 2048x2048x2048 and 4096x4096x4096"));
    assert!(refusal(&with("--dtype f64")).contains("no time of a rung of this ladder"));
    assert!(refusal(&with("--device cuda")).contains("two measured times"));
}

#[test]
fn files_that_will_not_do_are_refused_with_what_is_wrong() {
    let directory = Directory::new("ladder-refused");
    let page = directory.0.join("p.html");
    let with = |file: &Path| {
        format!("ladder sgemm --rungs 1 --html {} --measured {}", page.display(), file.display())
    };
    let simulated = warpwright("ladder sgemm --rungs 1 --size 32 --device sim --json");
    let simulated = directory.file("sim.json", &String::from_utf8(simulated.stdout).unwrap());
    for (file, part) in [
        (simulated, "(sim)"),
        (directory.file("text.json", "not JSON"), "it is no JSON"),
        (directory.file("number.json", "3"), "neither an array nor an object"),
        (directory.file("object.json", "{\"a\": 1}"), "not one that `bench --record` writes"),
        (recorded("simulator-2-cores-2026-11-21.json"), "no measured times of a ladder"),
        (recorded("tvm-f32-nn-nvidia-h200-2026-11-21.json"), "no time of a rung of this ladder"),
        (directory.0.join("missing.json"), "cannot be read"),
    ] {
        let message = refusal(&with(&file));
        assert!(message.contains(part) && message.contains(&file.display().to_string()), "{part}: {message}");
        assert!(!page.exists(), "nothing is written");
    }
    assert!(refusal("ladder sgemm --measured x.json").contains("--html"), "there is no page to put them on");
}

#[test]
fn without_measured_times_the_page_says_so_and_rungs_are_those_that_serve_the_type() {
    let directory = Directory::new("ladder-modelled");
    let page = directory.0.join("p.html");
    for arguments in ["dgemm --dtype f64", "hgemm --dtype bf16 --layout nt", "tvm --rungs 0,6"] {
        let output = warpwright(&format!("ladder {arguments} --device sim --html {}", page.display()));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains("<b>measured</b>: nothing on this page"), "{arguments}");
        assert!(text.contains("What changes in the CUDA C") && text.contains("<ins>"), "{arguments}");
    }
}
