//! Running in order: scoping and types.

use super::{FINISHED, PICTURES, checked, edited, refused};
use crate::index::Index;
use crate::ir::validate::check;
use crate::ir::{Stmt, parse};
use crate::sym::Sym;

#[test]
fn every_program_and_picture_that_is_not_wrong_on_purpose_is_well_formed() {
    for name in FINISHED.iter().chain(&PICTURES) {
        if let Err(faults) = checked(&super::text(name)) {
            let said: Vec<_> = faults.iter().map(ToString::to_string).collect();
            panic!("{name}:\n{}", said.join("\n"));
        }
    }
}

#[test]
fn unbound_symbols_are_refused() {
    let mut program =
        parse::program("program p(n: size, y: out f32[n]) { for i in 0..n { y[i] = 1 } }").unwrap();
    let Stmt::For(l) = &mut program.body[0] else { panic!() };
    let Stmt::Assign(a) = &mut l.body[0] else { panic!() };
    a.target.index[0] = Index::var(&Sym::new("k"));
    let faults = check(program).unwrap_err();
    super::assert_fault(
        &faults,
        &["`k` is not visible here", "nothing in the program binds it", "i: y[k] = 1"],
    );
}

#[test]
fn a_symbol_is_bound_once_and_not_used_after_its_scope() {
    let mut program =
        parse::program("program p(n: size, y: out f32[n]) { for i in 0..n { y[i] = 1 } }").unwrap();
    let copy = program.body[0].clone();
    program.body.push(copy);
    super::assert_fault(&check(program.clone()).unwrap_err(), &["`i` is bound twice", "walk::refresh"]);
    let Stmt::For(l) = program.body.pop().unwrap() else { panic!() };
    program.body.extend(l.body);
    super::assert_fault(&check(program).unwrap_err(), &["`i` is not visible here", "its scope has ended"]);
}

#[test]
fn symbols_are_used_as_what_they_are() {
    let mut program =
        parse::program("program p(n: size, f: flag, y: out f32[n]) { for i in 0..n { y[i] = 1 } }").unwrap();
    let (flag, size) = (program.params[1].sym.clone(), program.params[0].sym.clone());
    let Stmt::For(l) = &mut program.body[0] else { panic!() };
    let Stmt::Assign(a) = &mut l.body[0] else { panic!() };
    a.target.buffer = size;
    a.target.index.push(Index::constant(0));
    a.value = crate::ir::Value::Scalar(flag);
    let faults = check(program).unwrap_err();
    super::assert_fault(&faults, &["`n` stands where a buffer is wanted", "it is an integer"]);
    super::assert_fault(&faults, &["`f` stands where a scalar is wanted", "it is a flag"]);
}

#[test]
fn element_types_must_agree() {
    let sum = |a: &str, b: &str, out: &str, e: &str| {
        format!("program p(a: in {a}[1], b: in {b}[1], y: out {out}[1]) {{ y[0] = {e} }}")
    };
    checked(&sum("f16", "f16", "f16", "a[0] * b[0]")).expect("same type");
    checked(&sum("f16", "bf16", "f32", "f32(a[0]) * f32(b[0]) + 2")).expect("explicit");
    refused(&sum("f16", "bf16", "f32", "f32(a[0] * b[0])"), &["f16 meets bf16", "convert both to f32"]);
    refused(&sum("f32", "f64", "f64", "a[0] * b[0]"), &["f32 meets f64", "`f64(...)` round the other"]);
    refused(&sum("f32", "f32", "f16", "a[0]"), &["f32 stands where f16 is wanted", "write `f16(...)`"]);
    refused(&sum("c64", "c64", "f32", "f32(a[0])"), &["imaginary part"]);
    refused(&sum("c64", "c64", "c64", "max(a[0], b[0])"), &["no order"]);
    checked(&sum("f32", "f32", "c64", "c64(a[0]) + times_i(c64(b[0]))")).expect("of two parts");
    refused(
        &sum("f32", "f32", "c64", "c64(a[0] + times_i(b[0]))"),
        &["imaginary unit", "times_i(c128(...))"],
    );
    refused(&sum("i32", "i32", "i32", "a[0] + 0.5"), &["0.5", "no 32-bit integer"]);
}

#[test]
fn dropping_a_conversion_of_a_program_is_refused() {
    refused(
        &edited("hgemm_tma_wgmma", "bf16(alpha * acc[w, i, j])", "alpha * acc[w, i, j]"),
        &["f32 stands where bf16"],
    );
    refused(
        &edited("pictures/warp_tile_before_tensorize", "f32(a[i, k])", "a[i, k]"),
        &["bf16 meets f32", "acc[wm, i, 8*h + j] +="],
    );
}
