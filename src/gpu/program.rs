//! A finished program with any parameters on a GPU: called on small integers and compared with its reference.

use std::collections::{BTreeMap, HashMap};

use num_complex::Complex64;
use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::Program;
use warpwright_core::ir::validate::Valid;
use warpwright_core::sym::Sym;
use warpwright_core::target::Target;
use warpwright_cuda::{Buffer, Device, DevicePointer, Stream};

use super::{Arguments, Executable, diagnosis};
use crate::compile;
use crate::matrix::Matrix;
use crate::program::{Call, Case, Integers, calls, differences};

/// Each call is made this often on the same scratch memory, which must not matter.
const REPEATS: usize = 2;

/// Runs a program at some sizes and compares what it gives with its reference.
///
/// # Errors
/// What cannot be compiled or launched, and a reference that cannot be run.
pub fn check(
    device: &Device,
    target: &Target,
    valid: &Valid,
    reference: &Program,
    sizes: &Integers,
    seed: u64,
) -> Result<Case, Diagnosis> {
    let executable = Executable::new(device, valid.program().clone(), compile::cuda(valid)?, target);
    let stream = device.stream().map_err(diagnosis)?;
    let mut case = Case {
        sizes: sizes.clone(),
        compared: 0,
        differing: 0,
        first: None,
        exact: None,
        hazards: Vec::new(),
        launches: Vec::new(),
        passed: true,
    };
    for call in calls(valid.program(), reference, sizes, seed)? {
        let buffers = Buffers::new(device, &call).map_err(diagnosis)?;
        let prepared = executable.prepare_with(device, &Given { call: &call, buffers: &buffers })?;
        for _ in 0..REPEATS {
            let found = buffers
                .restore(&stream, &call)
                .and_then(|()| prepared.enqueue(&stream, 0))
                .and_then(|()| buffers.outputs(&stream, &call))
                .map_err(diagnosis)?;
            let (compared, differing, first) = differences(&call, &found);
            case.compared += compared;
            case.differing += differing;
            case.first = case.first.or(first);
        }
        case.launches = executable.launches(&prepared);
    }
    case.passed = case.differing == 0;
    Ok(case)
}

/// The tensors of a call in the memory of a GPU.
struct Buffers(HashMap<String, Buffer>);

/// Tensor maps want an address, also of a tensor that has no element.
const LEAST_BYTES: usize = 16;

impl Buffers {
    fn new(device: &Device, call: &Call) -> warpwright_cuda::Result<Buffers> {
        let one = |(name, matrix): (&String, &Matrix)| {
            Ok((name.clone(), device.alloc(matrix.bytes().len().max(LEAST_BYTES))?))
        };
        call.before.iter().map(one).collect::<warpwright_cuda::Result<_>>().map(Buffers)
    }

    /// Puts every tensor back as it was before the call.
    fn restore(&self, stream: &Stream, call: &Call) -> warpwright_cuda::Result<()> {
        call.before.iter().try_for_each(|(name, matrix)| self.0[name].write(stream, 0, matrix.bytes()))
    }

    /// The outputs after the call.
    fn outputs(&self, stream: &Stream, call: &Call) -> warpwright_cuda::Result<BTreeMap<String, Matrix>> {
        let mut outputs = BTreeMap::new();
        for name in call.expected.keys() {
            let mut matrix = call.before[name].clone();
            self.0[name].read(stream, 0, matrix.bytes_mut())?;
            outputs.insert(name.clone(), matrix);
        }
        Ok(outputs)
    }
}

/// A call as the arguments of its launches.
struct Given<'a> {
    call: &'a Call,
    buffers: &'a Buffers,
}

impl Arguments for Given<'_> {
    fn integer(&self, sym: &Sym) -> Option<i64> {
        self.call.integers.get(sym.name()).copied()
    }

    fn scalar(&self, sym: &Sym) -> Option<Complex64> {
        self.call.scalars.get(sym.name()).copied()
    }

    fn sets(&self) -> usize {
        1
    }

    fn tensor(&self, _: usize, sym: &Sym) -> Option<DevicePointer> {
        self.buffers.0.get(sym.name()).map(Buffer::pointer)
    }
}
