//! Where copies go that nobody looks at: behind the shared buffers and rings of a block a word for each of its threads. If a thread has several on
//! their way they write the same word, in any order; racecheck of compute-sanitizer warns of it. A word of its own for each would take shared memory,
//! which is what blocks of such kernels are short of.

use crate::ir::{Launch, Stmt, walk};

use super::{Behaviour, By, by_name};

/// Bytes of the word of a thread.
const WORD: i64 = 4;

/// The first byte of these words in the shared memory of a block; `None` if it makes no such copies ([`By::Copying`]).
pub fn landing(launch: &Launch<'_>) -> Option<i64> {
    let mut lands = false;
    walk::for_each(launch.body, &mut |stmt| {
        if let Stmt::Instruction(call) = stmt {
            let behaviour = by_name(&call.name).map(|record| record.behaviour);
            lands |= matches!(behaviour, Some(Behaviour::Prefetch(_, By::Copying)));
        }
    });
    lands.then(|| (launch.shared.bytes + WORD - 1) / WORD * WORD)
}

/// Bytes of shared memory of a block, these words among them.
pub fn shared_bytes(launch: &Launch<'_>) -> i64 {
    landing(launch).map_or(launch.shared.bytes, |offset| offset + WORD * launch.threads)
}
