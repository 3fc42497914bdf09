//! Launches one after another: the next one may begin while this one still runs, and waits for it itself
//! (programmatic dependent launch).

use super::Helper;

pub(in crate::emit::cuda) static WAIT_FOR_LAUNCH_BEFORE: Helper = Helper {
    needs: &[],
    text: r#"// Waits until the launch before this one has ended and what it wrote can be read.
__device__ __forceinline__ void wait_for_launch_before() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}"#,
};

pub(in crate::emit::cuda) static LET_NEXT_LAUNCH_BEGIN: Helper = Helper {
    needs: &[],
    text: r#"// Lets the blocks of the next launch, which waits for this one itself, take what room there is.
__device__ __forceinline__ void let_next_launch_begin() {
    asm volatile("griddepcontrol.launch_dependents;");
}"#,
};
