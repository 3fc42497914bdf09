use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::measured::Reader;
use super::tables::TEXTS;
use super::{entries, report, validate};
use warpwright_core::target::Target;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_table_is_in_the_index_and_says_where_it_is_from_and_whether_it_was_fitted_on() {
    let entries = entries().unwrap();
    let listed: BTreeSet<String> = entries.iter().map(|e| e.file.clone()).collect();
    assert_eq!(listed.len(), entries.len(), "no table stands twice");
    for file in fs::read_dir(root().join("validation")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".csv") || listed.contains(&format!("validation/{name}")), "{name}");
    }
    for entry in &entries {
        let text = fs::read_to_string(root().join(&entry.file)).unwrap();
        assert!(Target::by_name(&entry.gpu).is_ok() && !entry.source.is_empty() && !entry.licence.is_empty());
        let read = TEXTS.iter().find(|(file, _)| *file == entry.file);
        assert!(read.is_none_or(|(_, known)| *known == text), "{}", entry.file);
        assert_eq!(read.is_some(), entry.reader.is_some(), "{}", entry.file);
        assert_eq!(
            entry.reader.is_some(),
            entry.fit.is_some() && entry.fit_because.is_some(),
            "{}",
            entry.file
        );
        assert_eq!(entry.reader.is_none(), entry.because.is_some(), "{}", entry.file);
    }
}

#[test]
fn candidates_of_a_problem_stand_together_and_what_failed_is_left_out() {
    let text = "family,m,n,k,dtype,layout,status,seconds,registers,parameters\n\
                tsmttsm,8,8,1000000,f64,tn,correct,2e-3,40,tm=4 tn=2 unit=fma\n\
                tsmm,1000000,8,8,f32,nn,correct,1e-3,40,unit=fma\n\
                tsmttsm,8,8,1000000,f64,tn,compile,,,tm=2\n\
                tsmttsm,8,8,1000000,f64,tn,correct,3e-3,40,tm=8 tn=2 unit=fma\n";
    let found = Reader::Candidates.read(text).unwrap();
    let groups: Vec<&str> = found.iter().map(|m| m.group.as_str()).collect();
    assert_eq!(groups, ["8x8x1000000 f64 tn", "8x8x1000000 f64 tn", "1000000x8x8 f32 nn"]);
    assert_eq!((found[1].given.int("tm"), found[1].seconds, found[2].family.name), (8, 3e-3, "tsmm"));
    for (right, wrong, said) in [
        ("2e-3", "soon", "line 2: column seconds: `soon` cannot be read"),
        ("f64,tn", "f63,tn", "line 2: column dtype: `f63` cannot be read"),
        ("tm=4", "tm", "line 2: column parameters: `tm` is not a parameter"),
        ("tsmm,", "tsnn,", "line 3: column family: there is no family `tsnn`"),
    ] {
        let refused = Reader::Candidates.read(&text.replacen(right, wrong, 1)).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
    }
}

#[test]
fn mappings_of_the_papers_generator_are_choices_of_the_families() {
    let text = "op,dtype,M=N,K,ms,tflops,gbytes_per_s,registers,config\n\
                tsmm,D,8,33554432,1.0623,4.0,4043,48,threads=4 unroll=4 blockSize=256 cshared=True\n\
                tsmttsm,Z,12,11184810,1.1291,11.4,3804,254,TM=6 TN=6 blockSize=128 transposed=False leapFrog=True\n\
                tsmm,D,1,268435456,1.0434,0.5,4116,32,threads=1 unroll=4 blockSize=512 cshared=False\n";
    let found = Reader::Mappings.read(text).unwrap();
    let given = |at: usize| found[at].given.to_string();
    let shape = |at: usize| format!("{} {}", found[at].problem.shape, found[at].problem.layout);
    // Those of a group stand together.
    assert_eq!(given(0), "block=256 c_source=shared staging=registers threads=4 unit=fma unroll=4");
    assert_eq!(given(1), "block=512 c_source=l1 staging=registers threads=1 unit=fma unroll=4");
    assert_eq!(given(2), "block=128 leapfrog=true staging=registers tm=6 tn=6 transposed=false unit=fma");
    assert_eq!([shape(0), shape(2)], ["33554432x8x8 nn", "12x12x11184810 cn"]);
    assert!((found[0].seconds - 1.0623e-3).abs() < 1e-12);
    assert!(
        Reader::Mappings
            .read(&text.replace(",Z,", ",Q,"))
            .unwrap_err()
            .to_string()
            .contains("line 3: column dtype")
    );
}

#[test]
fn points_are_those_of_dense_and_aligned_matrices() {
    let text = "figure,operation,dtype,m,n,k,status,seconds,parameters,row_strides,offsets\n\
                widths,tsmttsm,c64,8,8,1000000,correct,1e-3,unit=fma,,\n\
                widths,tsmttsm,c64,8,8,1000000,correct,1e-3,unit=fma,9 9 8,0 0 0\n\
                widths,tsmm,f64,1000000,8,8,wrong,1e-3,unit=fma,,\n";
    let found = Reader::Points.read(text).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].group.as_str(), found[0].problem.layout.to_string().as_str()),
        ("tsmttsm widths c64", "cn")
    );
}

/// Floors a little below what the model reaches, so that a change that makes it worse does not pass unseen.
#[test]
fn the_model_is_as_true_as_the_documentation_says() {
    let found = validate().unwrap();
    let [candidates, points, mappings] = found.tables.as_slice() else { panic!("three tables") };
    let counted = |table: &super::Compared| (table.summary.kernels, table.summary.not_modelled);
    assert_eq!([counted(candidates), counted(points), counted(mappings)], [(13144, 48), (1251, 0), (42, 5)]);
    let of = &candidates.summary;
    assert!(
        of.spearman_median > Some(0.7) && of.spearman_least > Some(0.4) && of.kendall_median > Some(0.55)
    );
    assert!(of.best_of.one < Some(1.1) && of.best_of.ten < Some(1.04) && of.worst_of.fifty < Some(1.08));
    for (table, error) in [(candidates, 32.0), (points, 22.0), (mappings, 24.0)] {
        assert!(table.summary.mean_absolute_error_percent < Some(error), "{}", table.entry.file);
        assert!(table.summary.geometric_bias.is_some_and(|bias| (0.85..1.15).contains(&bias)));
    }
    assert!(
        points.groups.iter().all(|g| g.ranking.is_none()),
        "across problems a rank correlation says nothing"
    );
    assert_eq!(found.not_covered.len(), 5);
}

#[test]
fn the_documentation_has_the_summary_as_it_is_printed() {
    let printed = report::summary(&validate().unwrap());
    let documented = fs::read_to_string(root().join("validation/README.md")).unwrap();
    for line in printed.lines().filter(|line| !line.trim().is_empty()) {
        assert!(
            documented.lines().any(|l| l.trim() == line.trim()),
            "validation/README.md lacks this line of `validate-model --summary`:\n{line}"
        );
    }
}
