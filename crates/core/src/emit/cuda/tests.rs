use super::emit;
use crate::ir::parse;
use crate::ir::validate::{check, validate};
use crate::target::Target;

#[test]
fn placeholder_prints() {
    let text = std::fs::read_to_string("../../programs/sgemm_block_tiling.ww").unwrap();
    let program = parse::program(&text).unwrap();
    let valid = validate(check(program).unwrap(), Target::by_name("a100-40gb").unwrap()).unwrap();
    println!("{}", emit(&valid).unwrap());
}
