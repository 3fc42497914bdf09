//! Reads a program and prints it as CUDA C++: `cargo run --example emit -- programs/reduce_two_pass.ww TARGET`.

use std::error::Error;

use warpwright_core::emit::cuda;
use warpwright_core::ir::{parse, validate};
use warpwright_core::target::Target;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which program?")?;
    let target = Target::by_name(&arguments.next().ok_or("for which target?")?)?;
    let program = parse::program(&std::fs::read_to_string(path)?)?;
    let all = |faults: Vec<warpwright_core::diag::Diagnosis>| {
        faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let checked = validate::check(program).map_err(all)?;
    let valid = validate::validate(checked, target).map_err(all)?;
    print!("{}", cuda::emit(&valid)?);
    Ok(())
}
