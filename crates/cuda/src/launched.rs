//! What a library launches: the kernels of a recorded call, with their names, grids and what the driver says of them.

use std::ffi::CStr;

use cudarc::driver::sys;

use crate::driver::{self, check};
use crate::error::Result;
use crate::module::KernelAttributes;
use crate::stream::Stream;

/// A kernel that was launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    /// Its name, mangled if it is one of C++.
    pub name: String,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Bytes of shared memory of a block, those it declares and those asked for at launch.
    pub shared_bytes: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Blocks that a multiprocessor holds, by the driver's reckoning.
    pub blocks_per_sm: u32,
}

/// What the driver needs to be asked; some of it is missing before CUDA 12.3.
const NEEDED: [&str; 7] = [
    "cuGraphGetNodes",
    "cuGraphNodeGetType",
    "cuGraphKernelNodeGetParams_v2",
    "cuFuncGetName",
    "cuFuncGetAttribute",
    "cuKernelGetFunction",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
];

impl Stream {
    /// The kernels that `work` launches, in order, without running them; `None` where the driver is too old to say.
    ///
    /// Whatever is loaded or allocated at a first call should have been before: run `work` once beforehand.
    ///
    /// # Errors
    /// What `work` or the driver says.
    pub fn launches_of(&self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Option<Vec<Launched>>> {
        if !NEEDED.into_iter().all(driver::has) {
            return Ok(None);
        }
        let recorded = self.recorded(work)?;
        nodes(recorded.raw())?
            .into_iter()
            .filter_map(|node| launched(node).transpose())
            .collect::<Result<_>>()
            .map(Some)
    }
}

/// The nodes of a graph.
fn nodes(graph: sys::CUgraph) -> Result<Vec<sys::CUgraphNode>> {
    let mut count = 0;
    // SAFETY: the graph is alive; without room for nodes the driver gives their number.
    check("cuGraphGetNodes", unsafe { sys::cuGraphGetNodes(graph, std::ptr::null_mut(), &mut count) })?;
    let mut nodes = vec![std::ptr::null_mut(); count];
    if count > 0 {
        // SAFETY: there is room for as many as there are.
        check("cuGraphGetNodes", unsafe { sys::cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count) })?;
    }
    nodes.truncate(count);
    Ok(nodes)
}

/// The kernel of a node, if it is one of a kernel.
fn launched(node: sys::CUgraphNode) -> Result<Option<Launched>> {
    let mut kind = sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
    // SAFETY: the node's graph is alive.
    check("cuGraphNodeGetType", unsafe { sys::cuGraphNodeGetType(node, &mut kind) })?;
    if kind != sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL {
        return Ok(None);
    }
    // SAFETY: zeros are a value of this structure of numbers and pointers.
    let mut params: sys::CUDA_KERNEL_NODE_PARAMS = unsafe { std::mem::zeroed() };
    // SAFETY: the node is one of a kernel, and the structure that of the function's second version.
    check("cuGraphKernelNodeGetParams", unsafe { sys::cuGraphKernelNodeGetParams_v2(node, &mut params) })?;
    let mut function = params.func;
    if function.is_null() {
        // SAFETY: a node without a function has a kernel of a library.
        check("cuKernelGetFunction", unsafe { sys::cuKernelGetFunction(&mut function, params.kern) })?;
    }
    let block = [params.blockDimX, params.blockDimY, params.blockDimZ];
    let attributes = KernelAttributes::of(function)?;
    let mut blocks = 0;
    // SAFETY: the function is alive.
    check("cuOccupancyMaxActiveBlocksPerMultiprocessor", unsafe {
        sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &mut blocks,
            function,
            block.iter().product::<u32>() as i32,
            params.sharedMemBytes as usize,
        )
    })?;
    Ok(Some(Launched {
        name: name(function)?,
        grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
        block,
        shared_bytes: attributes.shared_bytes + params.sharedMemBytes,
        registers: attributes.registers,
        blocks_per_sm: blocks.max(0) as u32,
    }))
}

fn name(function: sys::CUfunction) -> Result<String> {
    let mut text = std::ptr::null();
    // SAFETY: the function is alive.
    check("cuFuncGetName", unsafe { sys::cuFuncGetName(&mut text, function) })?;
    // SAFETY: the driver gives a C string that lives as long as the function.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
