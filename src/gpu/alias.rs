//! Which memory the tensors of a call may share: what is only read, with each other. What is written shares memory with
//! nothing, since kernels read and write in orders of their own.

use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::{Io, Program, Space};

use super::executable::Arguments;

/// A tensor in the memory of a GPU.
#[derive(Clone, Debug)]
struct Place {
    name: String,
    written: bool,
    start: u64,
    bytes: u64,
}

/// Refuses tensors of one call that share memory where one of them is written.
///
/// # Errors
/// The first two tensors that overlap so.
pub(super) fn check(program: &Program, arguments: &dyn Arguments, set: usize) -> Result<(), Diagnosis> {
    let places: Vec<Place> = program
        .tensors()
        .filter_map(|tensor| {
            let mut extents = Vec::new();
            for dim in &tensor.dims {
                extents.push(dim.extent.eval(&|s| arguments.integer(s)).ok()?);
            }
            let row = extents.last().copied().unwrap_or(1);
            let rows: i64 = extents.iter().rev().skip(1).product();
            let stride = tensor.row_stride.as_ref().map_or(Some(row), |s| arguments.integer(s))?;
            let elements = if rows * row == 0 { 0 } else { (rows - 1) * stride + row };
            let before = arguments.bytes_before(&tensor.sym);
            Some(Place {
                name: tensor.sym.name().to_string(),
                written: tensor.space != Space::Param(Io::In),
                start: arguments.tensor(set, &tensor.sym)?.0 + before,
                bytes: ((elements * tensor.dtype.bytes()) as u64).saturating_sub(before),
            })
        })
        .collect();
    apart(&places)
}

fn apart(places: &[Place]) -> Result<(), Diagnosis> {
    let end = |p: &Place| p.start + p.bytes;
    // What has no element is nowhere.
    let places: Vec<&Place> = places.iter().filter(|p| p.bytes > 0).collect();
    for (at, one) in places.iter().enumerate() {
        for other in &places[at + 1..] {
            let overlap = one.start < end(other) && other.start < end(one);
            if overlap && (one.written || other.written) {
                return Err(Diagnosis::new(format!("{} and {} share memory", one.name, other.name))
                    .because("one of them is written, in an order of the kernel's own")
                    .instead("give the result memory of its own"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Place, apart};

    fn place(name: &str, written: bool, start: u64, bytes: u64) -> Place {
        Place { name: name.to_string(), written, start, bytes }
    }

    #[test]
    fn operands_may_be_one_but_a_result_stands_alone() {
        let (a, b) = (place("A", false, 1000, 80), place("B", false, 1040, 80));
        assert!(apart(&[a.clone(), b.clone(), place("C", true, 1120, 8)]).is_ok());
        let refused = apart(&[a.clone(), b.clone(), place("C", true, 1119, 8)]).unwrap_err().to_string();
        assert!(refused.contains("B and C share memory"), "{refused}");
        assert!(apart(&[place("C", true, 960, 41), a.clone()]).is_err());
        assert!(apart(&[place("C", true, 960, 40), a]).is_ok());
        assert!(apart(&[b, place("C", true, 1050, 0)]).is_ok());
    }
}
