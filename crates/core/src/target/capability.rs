//! What a GPU can do, as questions that the compiler asks.

use super::limits::ComputeCapability;

/// A feature that some GPUs have and some lack.
///
/// Source of the table in [`Capability::present_on`]: the "Target ISA notes" of each instruction in the PTX
/// ISA manual, version 8.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Capability {
    /// `atom.add.f64` in hardware.
    AtomicAddF64,
    /// Multiply-adds on pairs of f16 (`fma.rn.f16x2`).
    FmaF16,
    /// Multiply-adds on pairs of bf16 (`fma.rn.bf16x2`).
    FmaBf16,
    /// Multiply-adds on pairs of f32 (`fma.rn.f32x2`).
    FmaF32x2,
    /// `ldmatrix`: a warp loads 8 x 8 tiles of 16-bit elements from shared memory into fragments.
    Ldmatrix,
    /// `stmatrix`: the opposite direction.
    Stmatrix,
    /// `mma.sync.m16n8k8` on f16.
    MmaF16K8,
    /// `mma.sync.m16n8k16` on f16.
    MmaF16,
    /// `mma.sync.m16n8k16` on bf16.
    MmaBf16,
    /// `mma.sync.m16n8k8` on tf32.
    MmaTf32,
    /// `mma.sync.m8n8k4` on f64.
    MmaF64,
    /// `mma.sync.m16n8k4`, `k8` and `k16` on f64.
    MmaF64Wide,
    /// `mma.sync` on 8-bit integers, `m16n8k32`.
    MmaI8,
    /// Asynchronous copies of 4 to 16 bytes per thread from global to shared memory (`cp.async`).
    CpAsync,
    /// Reductions of integers over a warp in one instruction (`redux.sync`).
    Redux,
    /// Transaction barriers in shared memory: `mbarrier` with `expect_tx` and `try_wait`.
    Mbarrier,
    /// Bulk tensor copies by the tensor memory accelerator (`cp.async.bulk.tensor`).
    Tma,
    /// Fences between the generic and the asynchronous proxy (`fence.proxy.async`).
    ProxyFence,
    /// Thread block clusters and distributed shared memory.
    Clusters,
    /// Programmatic dependent launch (`griddepcontrol`).
    DependentLaunch,
    /// Vector reductions to global memory (`red.global.v4.f32.add`).
    RedVector,
    /// Moving registers between warpgroups (`setmaxnreg`).
    SetMaxRegisters,
    /// Warpgroup matrix multiply (`wgmma`).
    Wgmma,
    /// Tensor memory and its matrix multiply (`tcgen05`).
    Tcgen05,
    /// A second-level cache whose context says how many bytes device memory gives at a time at most (`CU_LIMIT_MAX_L2_FETCH_GRANULARITY`), and that
    /// follows it. No feature of PTX: the driver calls it a hint, and it is known to be followed where it was measured (bench/limits/granularity.cu).
    FetchGranularity,
    /// A register file of two banks, of even and of odd registers, that give a warp one register each in a cycle, and machine code whose
    /// multiply-adds are known well enough to change places. No feature of PTX: measured (bench/limits/register_file.py).
    TwoRegisterBanks,
}

impl Capability {
    /// Every capability, for lists and tests.
    pub const ALL: [Capability; 26] = [
        Capability::AtomicAddF64,
        Capability::FmaF16,
        Capability::FmaBf16,
        Capability::FmaF32x2,
        Capability::Ldmatrix,
        Capability::Stmatrix,
        Capability::MmaF16K8,
        Capability::MmaF16,
        Capability::MmaBf16,
        Capability::MmaTf32,
        Capability::MmaF64,
        Capability::MmaF64Wide,
        Capability::MmaI8,
        Capability::CpAsync,
        Capability::Redux,
        Capability::Mbarrier,
        Capability::Tma,
        Capability::ProxyFence,
        Capability::Clusters,
        Capability::DependentLaunch,
        Capability::RedVector,
        Capability::SetMaxRegisters,
        Capability::Wgmma,
        Capability::Tcgen05,
        Capability::FetchGranularity,
        Capability::TwoRegisterBanks,
    ];

    /// Whether devices of this compute capability have the feature.
    pub fn present_on(self, compute: ComputeCapability) -> bool {
        let at_least = |major, minor| compute >= ComputeCapability { major, minor };
        match self {
            Capability::FmaF16 => at_least(5, 3),
            Capability::AtomicAddF64 => at_least(6, 0),
            Capability::Ldmatrix | Capability::MmaF16K8 => at_least(7, 5),
            Capability::FmaBf16
            | Capability::MmaF16
            | Capability::MmaBf16
            | Capability::MmaTf32
            | Capability::MmaF64
            | Capability::MmaI8
            | Capability::CpAsync
            | Capability::Redux => at_least(8, 0),
            Capability::MmaF64Wide
            | Capability::Stmatrix
            | Capability::Mbarrier
            | Capability::Tma
            | Capability::ProxyFence
            | Capability::Clusters
            | Capability::DependentLaunch
            | Capability::RedVector
            | Capability::SetMaxRegisters => at_least(9, 0),
            Capability::FmaF32x2 => at_least(10, 0),
            Capability::Wgmma | Capability::TwoRegisterBanks | Capability::FetchGranularity => {
                compute == ComputeCapability { major: 9, minor: 0 }
            }
            Capability::Tcgen05 => compute.major == 10 || compute.major == 11,
        }
    }

    /// Whether NVIDIA offers the feature only under the architecture's own name (`sm_90a`), because later
    /// generations do not carry it over.
    pub fn architecture_specific(self) -> bool {
        matches!(self, Capability::Wgmma | Capability::Tcgen05 | Capability::SetMaxRegisters)
    }
}

#[cfg(test)]
mod tests {
    use super::Capability;

    #[test]
    fn the_list_names_each_capability_once() {
        for (i, capability) in Capability::ALL.iter().enumerate() {
            assert!(!Capability::ALL[..i].contains(capability), "{capability:?} stands twice");
        }
    }
}
