//! The page of tall and skinny products, from a small record that was made up.

use std::fs;
use std::path::PathBuf;

use crate::cli::{refusal, warpwright};

/// The directory of the record.
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/samples");

fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("warpwright-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    directory
}

#[test]
fn the_page_shows_every_figure_that_is_on_record_and_needs_no_gpu() {
    let directory = scratch("page");
    let file = directory.join("tsm.html");
    let output = warpwright(&format!("bench tsm --html {} --from {SAMPLES}", file.display()));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(&file).unwrap();
    // Four panels of widths and one in the cache, one map of tiles, one figure of reductions, one of options; one of memory.
    assert_eq!(page.matches("<figure>").count(), 9);
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert_eq!(
        page.matches("Example GPU, driver 580.159.04, 2026-11-22").count(),
        11,
        "each says where it is from"
    );
    for title in
        ["C = AᵀB, f64", "C = AᴴB, c128", "C = AB, f64", "C = AB, c128", "Tiles of a thread, f64, M = N = 16"]
    {
        assert!(page.contains(title), "{title}");
    }
    for line in [
        "two-pass",
        "global",
        "local",
        "neither",
        "leapfrog and transposed",
        "cuBLAS",
        "cuBLAS, rested",
        "in the cache, rested",
    ] {
        assert!(page.contains(&format!("</span> {line}")), "{line} is in a legend");
    }
    assert_eq!(page.matches("class=\"heat\"").count(), 4);
    // Two widths of four panels by two lines and of one by two more after a pause and two with the cache, three lengths by three reductions, two widths by four options, five
    // occupancies by three numbers of loads in flight.
    assert_eq!(page.matches("<title>").count() - 1, 16 + 4 + 4 + 9 + 8 + 15);
    assert!(
        page.contains("Example GPU, driver for CUDA 13.0, 2026-11-22, of zeros"),
        "where no more is known than what CUDA it brings"
    );
    assert!(page.contains("<td>4552 (48 warps)</td>") && page.contains("<td>8:1</td><td>4300</td>"));
    for title in ["M and N that differ", "Rows that are padded", "Short products"] {
        assert!(page.contains(title), "{title}");
    }
    assert!(page.contains("<td>C = AᵀB f64, 100000</td>"), "short products have means for each length");
    assert!(page.contains("<td>ld 9,9,9 offset 1,2,3</td>") && page.contains("<td>4x20</td>"));
    // Two launches of 1.25 us and 4 us of bytes, of the 4.75 and 5 us that it takes.
    assert!(page.contains("<td>136.8 %</td>") && page.contains("<td>130.0 %</td>"));
    for tag in ["div", "figure", "table", "tr", "td", "details", "h2"] {
        let count = |text: String| page.matches(&text).count();
        let opened = count(format!("<{tag}>")) + count(format!("<{tag} class="));
        assert_eq!(opened, count(format!("</{tag}>")), "{tag}");
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_page_of_nothing_or_of_several_gpus_is_refused_with_advice() {
    let directory = scratch("no-page");
    let (file, from) = (directory.join("tsm.html"), directory.display().to_string());
    let command = |more: &str| format!("bench tsm --html {} --from {from}{more}", file.display());
    assert!(refusal(&command("")).contains("no record"));
    let sample = fs::read_to_string(format!("{SAMPLES}/tsm-example-gpu-2026-11-22.json")).unwrap();
    for gpu in ["Example GPU", "Other GPU"] {
        let name = gpu.to_lowercase().replace(' ', "-");
        fs::write(directory.join(format!("tsm-{name}-2026-11-22.json")), sample.replace("Example GPU", gpu))
            .unwrap();
    }
    let said = refusal(&command(""));
    assert!(said.contains("Example GPU, Other GPU") && said.contains("--gpu"), "{said}");
    assert!(refusal(&command(" --gpu x")).contains("Example GPU"));
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(command("").split(' '))
        .args(["--gpu", "Other GPU"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(fs::read_to_string(&file).unwrap().contains("products on Other GPU"));
    assert!(refusal("bench tsm --html x.html").contains("--from"));
    fs::remove_dir_all(&directory).unwrap();
}
