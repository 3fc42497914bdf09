//! The checks, in order. The last ones lose the context, so they stay last.

use std::error::Error as StdError;
use std::time::Instant;

use warpwright_cuda::tensor_map::{Swizzle, TensorMapSpec, TensorType};
use warpwright_cuda::{
    Arg, CompileCache, Compiled, Device, Error, Kernel, LaunchConfig, MeasureOptions, Options, Source,
    TensorMap, measure,
};

use crate::gemm;

/// What a check gives: a line to print, or why it failed.
pub type Checked = Result<Outcome, Box<dyn StdError>>;

/// How a check that did not fail ended.
pub enum Outcome {
    /// It holds; with what was seen.
    Passed(String),
    /// This GPU cannot do it.
    Skipped(&'static str),
}

/// One check.
pub struct Check {
    /// What it is about.
    pub name: &'static str,
    body: fn(&Device) -> Checked,
}

/// All checks.
pub const ALL: &[Check] = &[
    Check { name: "compile and cache", body: compile_and_cache },
    Check { name: "saxpy", body: saxpy },
    Check { name: "arguments of every type", body: arguments },
    Check { name: "wrong launches are refused", body: wrong_launches },
    Check { name: "dynamic shared memory", body: dynamic_shared },
    Check { name: "a copy between other bytes", body: between },
    Check { name: "how much memory gives at a time", body: fetched },
    Check { name: "pinned copies", body: pinned_copies },
    Check { name: "too large an allocation", body: too_large },
    Check { name: "graph timing", body: graph_timing },
    Check { name: "what a closure launches", body: launched },
    Check { name: "cold timing", body: cold_timing },
    Check { name: "clusters", body: clusters },
    Check { name: "tensor map copies", body: tensor_map_copies },
    Check { name: "cuBLAS, every type and operation", body: gemm::every_type_and_operation },
    Check { name: "cuBLASLt, every type", body: gemm::every_type_by_lt },
    Check { name: "cuBLAS beside a naive kernel", body: gemm::beside_a_naive_kernel },
    Check { name: "cuBLAS and cuBLASLt at 4096", body: gemm::at_4096 },
    Check { name: "an illegal access is reported", body: illegal_access },
];

/// Runs one check on the first GPU.
pub fn run(check: &Check) -> Checked {
    (check.body)(&Device::open(0)?)
}

/// The plain kernels, compiled for this GPU.
pub fn kernels(device: &Device) -> Result<Compiled, Error> {
    compiled(device, "kernels.cu", include_str!("kernels.cu"))
}

fn compiled(device: &Device, name: &str, text: &str) -> Result<Compiled, Error> {
    let options = Options::for_arch(device.info().arch());
    Ok(CompileCache::standard().compile(&Source::new(name, text), &options)?.compiled)
}

/// One of the plain kernels, loaded.
pub fn kernel(device: &Device, name: &str) -> Result<Kernel, Error> {
    device.load(&kernels(device)?.cubin)?.kernel(name)
}

/// An error unless something holds.
pub fn ensure(holds: bool, complaint: impl FnOnce() -> String) -> Result<(), Box<dyn StdError>> {
    if holds { Ok(()) } else { Err(complaint().into()) }
}

fn passed(detail: impl Into<String>) -> Checked {
    Ok(Outcome::Passed(detail.into()))
}

fn compile_and_cache(device: &Device) -> Checked {
    let directory = std::env::temp_dir().join(format!("warpwright-selftest-{}", std::process::id()));
    let cache = CompileCache::at(&directory);
    let source = Source::new("kernels.cu", include_str!("kernels.cu"));
    let options = Options::for_arch(device.info().arch());
    let begin = Instant::now();
    let first = cache.compile(&source, &options)?;
    let cold = begin.elapsed();
    let begin = Instant::now();
    let second = cache.compile(&source, &options)?;
    let warm = begin.elapsed();
    std::fs::remove_dir_all(&directory)?;
    ensure(!first.hit && second.hit, || format!("hits: {} then {}", first.hit, second.hit))?;
    ensure(first.compiled == second.compiled, || "the cache changed the kernel".to_string())?;
    let begin = Instant::now();
    let loaded = device.load(&second.compiled.cubin)?.kernel("naive_sgemm")?;
    let load = begin.elapsed();
    let report = second.compiled.kernel("naive_sgemm").ok_or("the report lacks naive_sgemm")?;
    ensure(report.registers == loaded.attributes().registers, || {
        format!("{report:?} against {:?}", loaded.attributes())
    })?;
    passed(format!("cold {cold:.1?}, warm {warm:.1?}, load {load:.1?}, {} registers", report.registers))
}

fn saxpy(device: &Device) -> Checked {
    let (kernel, stream) = (kernel(device, "saxpy")?, device.stream()?);
    let n = 100_003usize;
    let x: Vec<f32> = (0..n + 1).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..n).map(|i| (i % 7) as f32).collect();
    let (on_x, on_y) = (device.upload(&x)?, device.upload(&y)?);
    let config = LaunchConfig::new([n.div_ceil(256) as u32, 1, 1], [256, 1, 1]);
    // An offset of one element into x.
    let args = [Arg::I32(n as i32), Arg::F32(2.0), Arg::Pointer(on_x.at(4)?), Arg::Pointer(on_y.pointer())];
    kernel.launch(&stream, &config, &args)?;
    let result: Vec<f32> = on_y.download(&stream)?;
    let wrong = (0..n).find(|&i| result[i] != 2.0 * x[i + 1] + y[i]);
    ensure(wrong.is_none(), || format!("wrong at {wrong:?}"))?;
    passed(format!("{n} elements, {:?}", kernel.attributes()))
}

fn arguments(device: &Device) -> Checked {
    let (kernel, stream) = (kernel(device, "arguments")?, device.stream()?);
    let out = device.alloc(80)?;
    let args = [
        Arg::Bool(true),
        Arg::I32(-2),
        Arg::I64(1 << 40),
        Arg::U32(u32::MAX),
        Arg::F32(0.5),
        Arg::F64(0.1),
        Arg::C64([6.0, 7.0]),
        Arg::C128([8.0, 9.0]),
        Arg::Pointer(out.pointer()),
    ];
    kernel.launch(&stream, &LaunchConfig::new([1; 3], [1; 3]), &args)?;
    let result: Vec<f64> = out.download(&stream)?;
    let expected = [1.0, -2.0, (1u64 << 40) as f64, u32::MAX as f64, 0.5, 0.1, 6.0, 7.0, 8.0, 9.0];
    ensure(result == expected, || format!("{result:?}"))?;
    passed("bool, int, long long, unsigned, float, double, float2, double2, pointer")
}

fn wrong_launches(device: &Device) -> Checked {
    let (kernel, stream) = (kernel(device, "saxpy")?, device.stream()?);
    let buffer = device.alloc(16)?;
    let pointer = Arg::Pointer(buffer.pointer());
    let right = [Arg::I32(1), Arg::F32(1.0), pointer, pointer];
    let one = LaunchConfig::new([1; 3], [1; 3]);
    let attempts = [
        ("too few arguments", one, &right[..3]),
        ("a wrong size", one, &[Arg::I64(1), Arg::F32(1.0), pointer, pointer][..]),
        ("too many threads", LaunchConfig::new([1; 3], [2048, 1, 1]), &right[..]),
        ("an empty grid", LaunchConfig::new([0, 1, 1], [1; 3]), &right[..]),
        ("too tall a grid", LaunchConfig::new([1, 70_000, 1], [1; 3]), &right[..]),
        ("too much shared memory", one.shared(1 << 20), &right[..]),
    ];
    for (what, config, args) in attempts {
        match kernel.launch(&stream, &config, args) {
            Err(Error::Launch { .. }) => {}
            other => return Err(format!("{what}: {other:?}").into()),
        }
    }
    let missing = device.load(&kernels(device)?.cubin)?.kernel("no_such_kernel");
    ensure(matches!(missing, Err(Error::Launch { .. })), || "a missing kernel was found".to_string())?;
    ensure(device.load(b"not machine code").is_err(), || "any bytes were loaded".to_string())?;
    ensure(buffer.at(17).is_err(), || "an offset outside was allowed".to_string())?;
    // None of this may have harmed the context.
    kernel.launch(&stream, &one, &right)?;
    stream.synchronize()?;
    passed(format!("{} kinds", attempts.len() + 3))
}

fn dynamic_shared(device: &Device) -> Checked {
    let (kernel, stream) = (kernel(device, "reverse")?, device.stream()?);
    let bytes = device.info().shared_per_block_optin;
    let words: Vec<i32> = (0..(bytes / 4) as i32).collect();
    let (from, to) = (device.upload(&words)?, device.alloc(bytes as usize)?);
    let args = [Arg::I32(words.len() as i32), Arg::Pointer(from.pointer()), Arg::Pointer(to.pointer())];
    kernel.launch(&stream, &LaunchConfig::new([1; 3], [512, 1, 1]).shared(bytes), &args)?;
    let result: Vec<i32> = to.download(&stream)?;
    ensure(result.iter().rev().eq(&words), || "not reversed".to_string())?;
    passed(format!("{bytes} bytes, {} block per multiprocessor", kernel.blocks_per_sm(512, bytes)?))
}

fn between(device: &Device) -> Checked {
    let stream = device.stream()?;
    let buffer = device.upload_between(&[1; 12], &[2u32, 3], &[4; 5])?;
    let bytes: Vec<u8> = buffer.download(&stream)?;
    let wanted = [&[1; 12][..], &[2, 0, 0, 0, 3, 0, 0, 0], &[4; 5]].concat();
    ensure(bytes == wanted, || format!("{bytes:?}"))?;
    passed("25 bytes")
}

fn fetched(device: &Device) -> Checked {
    let Some(usual) = device.fetches_at_most()? else {
        return Ok(Outcome::Skipped("the driver knows no such limit"));
    };
    let other = Device::open(0)?;
    for bytes in [32, 128] {
        other.fetch_at_most(Some(bytes))?;
        let found = device.fetches_at_most()?;
        if found != Some(bytes) {
            // It is a hint.
            return Ok(Outcome::Skipped("the driver does not follow, and need not: it is a hint"));
        }
    }
    drop(other);
    let found = device.fetches_at_most()?;
    ensure(found == Some(128), || format!("{found:?} while the GPU is in use"))?;
    device.fetch_at_most(None)?;
    let found = device.fetches_at_most()?;
    ensure(found == Some(usual), || format!("{found:?} is not what it was"))?;
    passed(format!("{usual} bytes unless somebody says otherwise"))
}

fn pinned_copies(device: &Device) -> Checked {
    let (kernel, stream) = (kernel(device, "slow_set")?, device.stream()?);
    let count = 1 << 24;
    let mut up = device.pinned::<u32>(count)?;
    let mut down = device.pinned::<u32>(count)?;
    for (i, word) in up.slice_mut()?.iter_mut().enumerate() {
        *word = (i as u32).wrapping_mul(2_654_435_761);
    }
    let buffer = device.alloc(4 * count)?;
    let begin = Instant::now();
    up.copy_to(&stream, &buffer, 0)?;
    // The kernel stands between the copies: the second must wait for it.
    let args = [Arg::I64(20_000_000), Arg::I32(-7), Arg::Pointer(buffer.pointer())];
    kernel.launch(&stream, &LaunchConfig::new([1; 3], [1; 3]), &args)?;
    down.copy_from(&stream, &buffer, 0)?;
    let enqueued = begin.elapsed();
    let same = down.slice()?[1..] == up.slice()?[1..];
    let done = begin.elapsed();
    ensure(same && down.slice()?[0] == -7i32 as u32, || "the copies disagree".to_string())?;
    ensure(enqueued < done / 2, || format!("not asynchronous: enqueued in {enqueued:?} of {done:?}"))?;
    // Changing the source must wait for the copy from it.
    up.copy_to(&stream, &buffer, 0)?;
    up.slice_mut()?.fill(0);
    let whole: Vec<u32> = buffer.download(&stream)?;
    ensure(whole[count - 1] == down.slice()?[count - 1], || "the source changed under the copy".to_string())?;
    // Timed alone, both ways.
    let before = stream.record()?;
    up.copy_to(&stream, &buffer, 0)?;
    let between = stream.record()?;
    down.copy_from(&stream, &buffer, 0)?;
    let after = stream.record()?;
    stream.synchronize()?;
    let rate = |seconds: f64| 4.0 * count as f64 / seconds / 1e9;
    passed(format!(
        "enqueued in {enqueued:.1?} of {done:.1?}; {:.1} GB/s up, {:.1} GB/s down",
        rate(between.seconds_since(&before)?),
        rate(after.seconds_since(&between)?)
    ))
}

fn too_large(device: &Device) -> Checked {
    match device.alloc(4 * device.info().memory_bytes) {
        Err(error @ Error::OutOfMemory { .. }) => {
            passed(error.to_string().lines().next().unwrap_or("").to_string())
        }
        other => Err(format!("{other:?}").into()),
    }
}

fn graph_timing(device: &Device) -> Checked {
    let (kernel, stream) = (kernel(device, "saxpy")?, device.stream()?);
    let n = 1usize << 22;
    let sets = measure::rotation(8 * n, device.info().l2_bytes);
    let x: Vec<_> = (0..sets).map(|_| device.alloc(4 * n)).collect::<Result<_, _>>()?;
    let y: Vec<_> = (0..sets).map(|_| device.alloc(4 * n)).collect::<Result<_, _>>()?;
    for buffer in x.iter().chain(&y) {
        buffer.fill(&stream, 0)?;
    }
    let config = LaunchConfig::new([n.div_ceil(256) as u32, 1, 1], [256, 1, 1]);
    let mut launches = 0;
    let timing = measure::graph(&stream, &MeasureOptions::default(), |stream, i| {
        launches += 1;
        let (x, y) = (x[i % sets].pointer(), y[i % sets].pointer());
        kernel.launch(stream, &config, &[Arg::I32(n as i32), Arg::F32(1.0), Arg::Pointer(x), Arg::Pointer(y)])
    })?;
    let rate = 12.0 * n as f64 / timing.median / 1e12;
    ensure(timing.min > 0.0 && timing.min <= timing.median, || format!("{timing:?}"))?;
    ensure(timing.launches_per_sample >= 20 && launches > 20, || format!("{launches} launches"))?;
    // No GPU of today moves 20 TB/s: more would mean that launches were lost.
    ensure(rate < 20.0, || format!("{rate} TB/s cannot be"))?;
    passed(format!(
        "{sets} sets, median {:.2} us of {} samples of {} launches, quartiles {:.2} to {:.2}: {rate:.2} TB/s",
        timing.median * 1e6,
        timing.samples.len(),
        timing.launches_per_sample,
        timing.quartiles.0 * 1e6,
        timing.quartiles.1 * 1e6
    ))
}

fn launched(device: &Device) -> Checked {
    let (kernel, stream) = (kernel(device, "saxpy")?, device.stream()?);
    let n = 1000;
    let (x, y) = (device.alloc(4 * n)?, device.alloc(4 * n)?);
    let args = [Arg::I32(n as i32), Arg::F32(0.0), Arg::Pointer(x.pointer()), Arg::Pointer(y.pointer())];
    let config = |blocks| LaunchConfig::new([blocks, 1, 1], [256, 1, 1]);
    let launched = stream.launches_of(|stream| {
        kernel.launch(stream, &config(4), &args)?;
        y.fill(stream, 0)?;
        kernel.launch(stream, &config(5), &args)
    })?;
    let Some(launched) = launched else {
        return Ok(Outcome::Skipped("the driver is too old to say what was launched"));
    };
    let seen: Vec<_> = launched.iter().map(|l| (l.name.as_str(), l.grid, l.block, l.registers)).collect();
    let registers = kernel.attributes().registers;
    let expected = [4, 5].map(|blocks| (kernel.name(), [blocks, 1, 1], [256, 1, 1], registers));
    ensure(seen == expected, || format!("{seen:?} instead of {expected:?}"))?;
    let blocks = kernel.blocks_per_sm(256, 0)?;
    ensure(launched.iter().all(|l| l.blocks_per_sm == blocks), || {
        format!("{launched:?} instead of {blocks}")
    })?;
    passed(format!("{} launches of {}, a memset between them left out", launched.len(), kernel.name()))
}

fn cold_timing(device: &Device) -> Checked {
    let (kernel, stream) = (kernel(device, "saxpy")?, device.stream()?);
    let n = 1usize << 20;
    let (x, y) = (device.alloc(4 * n)?, device.alloc(4 * n)?);
    let config = LaunchConfig::new([n.div_ceil(256) as u32, 1, 1], [256, 1, 1]);
    let args = [Arg::I32(n as i32), Arg::F32(0.0), Arg::Pointer(x.pointer()), Arg::Pointer(y.pointer())];
    let options = MeasureOptions::default();
    let warm = measure::graph(&stream, &options, |stream, _| kernel.launch(stream, &config, &args))?;
    let cold = measure::cold(&stream, &options, |stream, _| kernel.launch(stream, &config, &args))?;
    ensure(cold.median > warm.median, || format!("cold {} against warm {}", cold.median, warm.median))?;
    passed(format!("cold {:.2} us, warm {:.2} us", cold.median * 1e6, warm.median * 1e6))
}

fn clusters(device: &Device) -> Checked {
    if !device.info().clusters {
        return Ok(Outcome::Skipped("this GPU has no clusters"));
    }
    let module = device.load(&compiled(device, "hopper.cu", include_str!("hopper.cu"))?.cubin)?;
    let (kernel, stream) = (module.kernel("ranks")?, device.stream()?);
    for size in [1u32, 2, 4, 8, 16] {
        let out = device.alloc(8 * 32)?;
        let config = LaunchConfig::new([32, 1, 1], [32, 1, 1]).clusters([size, 1, 1]);
        match kernel.launch(&stream, &config, &[Arg::Pointer(out.pointer())]) {
            // 16 is beyond what every GPU with clusters must do.
            Err(Error::Driver { .. }) if size == 16 => continue,
            other => other?,
        }
        let result: Vec<u32> = out.download(&stream)?;
        let expected: Vec<u32> = (0..32).flat_map(|block| [block % size, size]).collect();
        ensure(result == expected, || format!("size {size}: {result:?}"))?;
    }
    let odd = LaunchConfig::new([31, 1, 1], [32, 1, 1]).clusters([2, 1, 1]);
    ensure(kernel.launch(&stream, &odd, &[Arg::Pointer(device.alloc(512)?.pointer())]).is_err(), || {
        "a cluster that does not divide the grid was allowed".to_string()
    })?;
    passed("sizes 1 to 16")
}

fn tensor_map_copies(device: &Device) -> Checked {
    if !device.info().tensor_maps {
        return Ok(Outcome::Skipped("this GPU has no tensor maps"));
    }
    let module = device.load(&compiled(device, "hopper.cu", include_str!("hopper.cu"))?.cubin)?;
    let (kernel, stream) = (module.kernel("copy_tile")?, device.stream()?);
    // Rows padded to a multiple of 16 bytes, and a last row and column of tiles that stick out.
    let (rows, columns, pitch) = (100usize, 75usize, 76usize);
    let matrix: Vec<u32> = (0..(rows * pitch) as u32).map(|i| i + 1).collect();
    let from = device.upload(&matrix)?;
    let (tile_rows, tile_columns) = (16usize, 32usize);
    let words = tile_rows * tile_columns;
    let to = device.alloc(4 * words)?;
    let mut tiles = 0;
    for swizzle in [Swizzle::None, Swizzle::Bytes128] {
        let extents = [rows as u64, columns as u64];
        let tile = [tile_rows as u32, tile_columns as u32];
        let spec = TensorMapSpec::matrix(TensorType::U32, from.pointer(), extents, 4 * pitch as u64, tile);
        let map = TensorMap::encode(&spec.swizzled(swizzle))?;
        for (row, column) in [(0, 0), (48, 32), (96, 64), (-8, 64), (4096, 0)] {
            to.fill(&stream, 0xff)?;
            let config = LaunchConfig::new([1; 3], [128, 1, 1]).shared(4 * words as u32);
            let at = [Arg::TensorMap(&map), Arg::I32(row), Arg::I32(column), Arg::I32(words as i32)];
            kernel.launch(&stream, &config, &[at[0], at[1], at[2], at[3], Arg::Pointer(to.pointer())])?;
            let result: Vec<u32> = to.download(&stream)?;
            for (r, c) in (0..tile_rows).flat_map(|r| (0..tile_columns).map(move |c| (r, c))) {
                let (y, x) = (row as i64 + r as i64, column as i64 + c as i64);
                let inside = (0..rows as i64).contains(&y) && (0..columns as i64).contains(&x);
                let expected = if inside { matrix[y as usize * pitch + x as usize] } else { 0 };
                // A row of the tile is 128 bytes: 8 pieces of 4 words, permuted by the row's number.
                let piece = if swizzle == Swizzle::Bytes128 { (c / 4) ^ (r % 8) } else { c / 4 };
                let found = result[r * tile_columns + piece * 4 + c % 4];
                ensure(found == expected, || {
                    format!("{swizzle:?} tile {row},{column} at {r},{c}: {found} for {expected}")
                })?;
            }
            tiles += 1;
        }
    }
    passed(format!("{tiles} tiles, plain and swizzled, zeros outside"))
}

fn illegal_access(device: &Device) -> Checked {
    let (kernel, stream) = (kernel(device, "touch_nowhere")?, device.stream()?);
    kernel.launch(&stream, &LaunchConfig::new([1; 3], [1; 3]), &[])?;
    match stream.synchronize() {
        Err(error @ Error::Driver { advice: Some(_), .. }) => {
            passed(error.to_string().lines().next().unwrap_or("").to_string())
        }
        other => Err(format!("{other:?}").into()),
    }
}
