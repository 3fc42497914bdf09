"""How fast the register file gives multiply-adds their operands, instruction by instruction.

    python3 bench/limits/register_file.py

Needs nvcc and a GPU of compute capability 9.0. A kernel with 576 f32 multiply-adds in a loop is compiled once; then its machine
code is overwritten with sequences that no compiler would write, and a warp on each scheduler counts cycles. Each
multiply-add is written as the banks of its three operands (E: a register with an even number, O: an odd one, Z: none), with a
new register at every place, or with what the operand cache keeps (`.reuse` in machine code). Printed are the cycles in which
the sequence passes once, what the loop itself costs taken off. The model of them is crates/cuda/src/machine_code/registers.rs.
"""

import ctypes
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

MULTIPLY_ADDS = 576
THREADS = 128
SOURCE = """
extern "C" __global__ void __launch_bounds__(512, 1) loop(float *data, int times, unsigned *cycles) {
    float x[100];
    #pragma unroll
    for (int i = 0; i < 100; ++i) x[i] = data[512 * i + threadIdx.x];
    __syncthreads();
    unsigned start = clock();
    #pragma unroll 1
    for (int n = 0; n < times; ++n) {
        #pragma unroll
        for (int i = 0; i < 576; ++i) x[i % 100] = __fmaf_rn(x[(i + 7) % 100], x[(i + 12) % 100], x[i % 100]);
    }
    unsigned end = clock();
    #pragma unroll
    for (int i = 0; i < 100; ++i) data[512 * i + threadIdx.x] = x[i];
    cycles[blockIdx.x * blockDim.x + threadIdx.x] = end - start;
}
"""
FFMA, NONE = 0x223, 255


def instruction(bits):
    return int.from_bytes(bits, "little")


def multiply_add(sources, kept):
    """`FFMA c, a, b, c` that starts a cycle before the next; of c = none nothing is left."""
    a, b, c = sources
    control = 1 << 105 | 1 << 109 | 0b111_111 << 110 | kept << 122
    return FFMA | 7 << 12 | c << 16 | a << 24 | b << 32 | c << 64 | control


def code_section(cubin):
    """Where the kernel's machine code lies: its first byte, and how many."""
    (headers,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    sections = [struct.unpack_from("<IIQQQQ", cubin, headers + n * size) for n in range(count)]
    for name, _, _, _, first, length in sections:
        at = sections[names][4] + name
        if cubin[at : cubin.index(b"\0", at)] == b".text.loop":
            return first, length
    sys.exit("the compiler has made no kernel")


def template():
    """The kernel's machine code, where its multiply-adds lie, and the registers of either bank that are theirs alone."""
    with tempfile.TemporaryDirectory() as directory:
        source, output = Path(directory) / "loop.cu", Path(directory) / "loop.cubin"
        source.write_text(SOURCE)
        subprocess.run(["nvcc", "-cubin", "-arch=sm_90a", "-o", output, source], check=True)
        cubin = bytearray(output.read_bytes())
    first, length = code_section(cubin)
    places = [at for at in range(first, first + length, 16) if instruction(cubin[at : at + 2]) & 0xFFF == FFMA]
    if len(places) != MULTIPLY_ADDS:
        sys.exit(f"the compiler has made {len(places)} multiply-adds of {MULTIPLY_ADDS}")
    words = [instruction(cubin[at : at + 16]) for at in places]
    used = {word >> shift & 0xFF for word in words for shift in (16, 24, 32, 64)}
    return cubin, places, [sorted(r for r in used if r % 2 == bank) for bank in (0, 1)]


class Gpu:
    """The first GPU by the driver's interface."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuCtxCreate_v2", ctypes.byref(context), 0, device)
        self.data, self.cycles = ctypes.c_uint64(), ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(self.data), 1 << 20)
        self("cuMemsetD32_v2", self.data, 0x3F000000, 1 << 18)
        self("cuMemAlloc_v2", ctypes.byref(self.cycles), 4 * THREADS)

    def __call__(self, name, *arguments):
        if code := getattr(self.driver, name)(*arguments):
            sys.exit(f"{name} has failed: error {code}")

    def time(self, cubin, times=500):
        """Cycles of the loop once, the least of five runs."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self("cuModuleLoadData", ctypes.byref(module), bytes(cubin))
        self("cuModuleGetFunction", ctypes.byref(function), module, b"loop")
        arguments = [self.data, ctypes.c_int(times), self.cycles]
        pointers = (ctypes.c_void_p * 3)(*[ctypes.addressof(a) for a in arguments])
        counted, runs = (ctypes.c_uint * THREADS)(), []
        for _ in range(5):
            self("cuLaunchKernel", function, 1, 1, 1, THREADS, 1, 1, 0, None, pointers, None)
            self("cuMemcpyDtoH_v2", counted, self.cycles, 4 * THREADS)
            runs.append(max(counted) / times)
        self("cuModuleUnload", module)
        return min(runs)


class Sequence:
    """Multiply-adds as they are written here; `8.reuse` and `9` are certain registers of the even and the odd bank."""

    def __init__(self, banks):
        self.banks, self.drawn = banks, 0

    def register(self, letter):
        if letter == "Z":
            return NONE
        if letter in "EO":
            self.drawn += 1
            return self.banks["EO".index(letter)][4 + self.drawn * 7 % (len(self.banks[0]) - 8)]
        number = int(letter)
        return self.banks[number % 2][number // 2 % 4]

    def multiply_add(self, word):
        operands = list(word) if len(word) == 3 else word.split(",")
        kept = sum(1 << place for place, operand in enumerate(operands) if operand.endswith(".reuse"))
        return multiply_add([self.register(operand.removesuffix(".reuse")) for operand in operands], kept)


WORDS = """
ZZE | EOZ | ZEO | EZE | EEZ | ZEE | EEO | EOE | OEE | EEE
ZEE ZOO | EEO EOO | EEE OOO | EEE EEO | EEE EOO
ZEE ZEE ZOO | ZEE ZOO ZEO | ZEE ZEE ZOO ZOO | ZEE ZOO ZEO ZEO | ZEE ZEO ZEO ZEO
ZEE ZOO ZEO ZEO ZEO ZEO | ZEO ZEO ZOO
0.reuse,E,E | 0,E,E | E,0.reuse,E
0.reuse,E,E 0,E,E | 0.reuse,E,E 1.reuse,E,E | 0.reuse,E,E O,E,E O,E,E O,E,E | 0.reuse,E,E 2.reuse,E,E
0.reuse,2.reuse,E | 0.reuse,1.reuse,E | 0.reuse,3.reuse,E 1.reuse,2.reuse,E
"""


def main():
    if not shutil.which("nvcc"):
        sys.exit("register_file.py needs nvcc on the PATH; skipped")
    cubin, places, banks = template()
    gpu = Gpu()

    def cycles(words):
        sequence = Sequence(banks)
        for n, at in enumerate(places):
            cubin[at : at + 16] = sequence.multiply_add(words[n % len(words)]).to_bytes(16, "little")
        return gpu.time(cubin)

    loop = cycles(["ZZZ"]) - MULTIPLY_ADDS
    print(f"the loop itself takes {loop:.1f} cycles\n\ncycles  multiply-adds")
    for line in WORDS.strip().splitlines():
        for words in map(str.split, line.split("|")):
            print(f"{(cycles(words) - loop) * len(words) / MULTIPLY_ADDS:6.2f}  {' '.join(words)}")


if __name__ == "__main__":
    main()
