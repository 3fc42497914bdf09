//! The self-test's checks as one test; passed over with a line where there is no GPU or no compiler.

#[path = "../examples/selftest/checks.rs"]
mod checks;
#[path = "../examples/selftest/gemm.rs"]
mod gemm;

use warpwright_cuda::{Error, Library, device, nvrtc::Nvrtc};

#[test]
fn every_check_of_the_self_test() {
    if let Some(reason) = device::list().reason {
        eprintln!("skipped: no GPU here ({})", reason.to_string().lines().next().unwrap_or(""));
        return;
    }
    if let Err(Error::LibraryMissing { library: Library::Nvrtc, advice, .. }) = Nvrtc::get() {
        eprintln!("skipped: no NVRTC here ({advice})");
        return;
    }
    let mut failures = Vec::new();
    for check in checks::ALL {
        match checks::run(check) {
            Ok(checks::Outcome::Passed(detail)) => eprintln!("ok: {}: {detail}", check.name),
            Ok(checks::Outcome::Skipped(reason)) => eprintln!("skipped: {}: {reason}", check.name),
            Err(error) => match error.downcast_ref() {
                // The comparison is optional, and so are its libraries.
                Some(Error::LibraryMissing { library: Library::Cublas | Library::CublasLt, .. }) => {
                    eprintln!("skipped: {}: {error}", check.name);
                }
                _ => failures.push(format!("{}: {error}", check.name)),
            },
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
