//! The numbers of the time model that were fitted or chosen, not measured one by one.
//!
//! `warpwright validate-model --fit` fits them on tables that it is told; `validation/README.md` says which those were.

/// All of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// The part of a pipe's peak at the boost clock that multiply-adds of threads reach.
    pub threads: f64,
    /// Likewise of matrix units.
    pub matrix_units: f64,
    /// The power in the sum of what overlaps.
    pub power: f64,
    /// Cycles of a request that copies to shared memory while the block has nothing else to do.
    pub copy: f64,
    /// Instructions for the address of a request to device memory.
    pub address: f64,
    /// Instructions of a warp at the turn of a loop that is not written out.
    pub turn: f64,
    /// Cycles of a barrier and of the first load from shared memory after it.
    pub barrier: f64,
    /// Warps of a scheduler with which half of that power is reached: one warp does one thing after the other.
    pub overlap: f64,
    /// The part of the bandwidth of device memory that kernels reach where nobody measured it.
    pub bandwidth: f64,
    /// Seconds of a launch that follows another.
    pub launch: f64,
    /// Cycles of a load from shared memory that a warp waits for.
    pub load: f64,
    /// The part that a warp waits of what chains of operations take longer than they take to issue.
    pub chain: f64,
    /// Cycles in which a multiprocessor passes on a line of a store.
    pub line: f64,
    /// By how much device memory takes longer where each line that is asked for is one sector, for each sector of it that is not.
    pub scattered: f64,
    /// The power in the sum of what a multiprocessor does and what device memory gives.
    pub memory_power: f64,
    /// The part of a latency of memory that a warp waits for.
    pub latency: f64,
}

/// Where a constant is.
pub type Place = fn(&mut Constants) -> &mut f64;

impl Constants {
    /// The names of all that can be fitted, and where each is.
    pub const NAMED: [(&'static str, Place); 16] = [
        ("threads", |c| &mut c.threads),
        ("matrix_units", |c| &mut c.matrix_units),
        ("power", |c| &mut c.power),
        ("copy", |c| &mut c.copy),
        ("address", |c| &mut c.address),
        ("turn", |c| &mut c.turn),
        ("barrier", |c| &mut c.barrier),
        ("overlap", |c| &mut c.overlap),
        ("bandwidth", |c| &mut c.bandwidth),
        ("launch", |c| &mut c.launch),
        ("load", |c| &mut c.load),
        ("chain", |c| &mut c.chain),
        ("line", |c| &mut c.line),
        ("scattered", |c| &mut c.scattered),
        ("memory_power", |c| &mut c.memory_power),
        ("latency", |c| &mut c.latency),
    ];
}

/// The constants that predictions are made with.
pub const CONSTANTS: Constants = Constants {
    threads: 0.9,
    matrix_units: 0.99,
    power: 6.749,
    copy: 9.669,
    address: 1.835,
    turn: 63.363,
    barrier: 189.745,
    overlap: 1.231,
    bandwidth: 0.85,
    launch: 9.38e-7,
    load: 5.06,
    chain: 0.69,
    line: 6.135,
    scattered: 0.293,
    memory_power: 3.5,
    latency: 0.593,
};
