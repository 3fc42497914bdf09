#!/usr/bin/env python3
"""Which of the project's goals hold by the tables of one GPU.

    python3 bench/goals.py bench/results/tsm-nvidia-h200-*.csv bench/results/fc-nvidia-h200-*.csv [bench/results/limits-nvidia-h200-*.csv] \\
        [validation/cublas_h200.csv validation/tsmgen_h200.csv] [--list|--tune]

Of every point the latest file has the last word, rested or sustained whichever is the better; with --list the points that are below their
goal are listed, with --tune the commands that tune them. R is the roofline: bandwidth is the largest that `bench bandwidth` has found, which a file may name as GB/s with --read and
--copy (4552 and 4314 for an H200), P the most that cuBLAS reaches in any product of the type (56.4 and 53.6 TFLOP/s for an H200, --double and
--single). Times of padded rows are compared with distinct sectors of 32 bytes, as the tables have them. Tables of limits have what kernels take that
do a part of the work and nothing else (bench/limits/padded_copies.cu, bulk_and_products.cu, bulk_and_split.cu and short.cu): of points below their goal that were measured on the same GPU and day it
is said how many take no longer than 1/0.98 of that. Of the products in a table cublas_*.csv it is said how many times as fast as cuBLAS they are in the
mean, and those in a table tsmgen_*.csv are compared with the kernels in it.
"""

import argparse
import csv
import math
import os
import re
import signal

BYTES = {"f32": 4, "f64": 8, "c64": 8, "c128": 16}
NONE = {"", "-"}


def number(text):
    return 0.0 if text in NONE else float(text)


def mean(values):
    values = [v for v in values if v > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


class Point:
    """A measured product, tall and skinny."""

    def __init__(self, row):
        self.row = row
        self.dtype, self.operation = row["dtype"], row["operation"]
        self.m, self.n, self.k = (int(row[x]) for x in "mnk")
        self.seconds = min(t for t in (number(row["seconds"]), number(row["rested_seconds"])) if t > 0)
        self.times_cublas = max(number(row["times_cublas"]), number(row["rested_times_cublas"]))
        self.fraction = max(number(row["fraction"]), number(row["rested_fraction"]))

    @property
    def width(self):
        return max(sorted((self.m, self.n, self.k))[:2])

    def arithmetic(self, machine):
        """Seconds of its arithmetic at P."""
        flops = (8 if self.dtype[0] == "c" else 2) * self.m * self.n * self.k
        return flops / ((machine.double if self.dtype in ("f64", "c128") else machine.single) * 1e12)

    def of_memory(self, machine):
        """Seconds of its bytes by one bandwidth for all points, where rows lie densely."""
        bytes_ = BYTES[self.dtype]
        if self.operation == "tsmm":
            moved, bandwidth = bytes_ * (self.m * self.k + self.m * self.n + self.k * self.n), machine.copy
        else:
            moved, bandwidth = bytes_ * (self.k * self.m + self.k * self.n + self.m * self.n), machine.read
        return moved / (bandwidth * 1e9)

    def of_roofline(self, machine):
        """The part of R."""
        return max(self.of_memory(machine), self.arithmetic(machine)) / self.seconds

    def completed(self, machine):
        """The part of R that there is where sectors of C that are written in part are read before, as they have to be: a sector is the least that
        goes to device memory. They are read at the bandwidth of reads, which is the largest."""
        size, strides = BYTES[self.dtype], self.row["row_strides"].split()
        if self.operation != "tsmm" or int(strides[2]) == self.n:
            return 1.0
        # After 32 rows everything stands in the same places of its sectors again.
        filled, touched = 0, set()
        for row in range(32):
            start = row * int(strides[2]) * size
            end = start + self.n * size
            touched.update(range(start // 32, (end - 1) // 32 + 1))
            filled += max(0, end // 32 - (start + 31) // 32)
        read = (len(touched) - filled) * self.m
        roofline = self.fraction * self.seconds
        return roofline / (roofline + read / (machine.read * 1e9))

    def of_launches(self, machine):
        """The part of two empty launches and its bytes."""
        return (2 * number(self.row["empty_launch_seconds"]) + self.of_memory(machine)) / self.seconds

    def rows(self):
        """The long extent."""
        return max(self.m, self.n, self.k)

    def tune(self):
        """The command that tunes it, for bench/queue.sh."""
        layout = "nn" if self.operation == "tsmm" else "cn" if self.dtype.startswith("c") else "tn"
        words = [f"tune {self.m}x{self.n}x{self.k} --dtype {self.dtype} --layout {layout}"]
        dense = [self.k if layout == "nn" else self.m, self.n, self.n]
        strides = [int(x) for x in self.row["row_strides"].split()] or dense
        words += [f"--ld{name} {stride}" for name, stride, width in zip("abc", strides, dense) if stride != width]
        if self.row["offsets"] not in ("", "0 0 0"):
            words.append(f"--offset {','.join(self.row['offsets'].split())}")
        return " ".join([*words, "--again --rested"])

    def __str__(self):
        strides = self.row["row_strides"] + ("" if self.row["offsets"] in ("", "0 0 0") else f" from {self.row['offsets']}")
        return f"{self.operation} {self.dtype} {self.m}x{self.n}x{self.k} {strides}".strip()


def latest(files, key, keep):
    points = {}
    for name in sorted(files):
        with open(name) as file:
            for row in csv.DictReader(file):
                if keep(row):
                    points[key(row)] = row
    return list(points.values())


def limits(files):
    """Seconds that a long row takes at least, by what the point is and where it was measured; of short products their length counts."""
    found = {}
    for name in files:
        with open(name) as file:
            for row in csv.DictReader(file):
                seconds = number(row["seconds"]) / max(int(row[x]) for x in "mnk")
                found[limit_key(row)] = min(seconds, found.get(limit_key(row), math.inf))
    return found


def limit_key(row):
    short, long = ("m", "k") if row["operation"] == "tsmttsm" else ("k", "m")
    length = row[long] if row["figure"] == "short" else ""
    return *(row[x] for x in ("figure", "operation", "dtype", short, "n", "row_strides", "gpu", "date")), length


LETTERS = {"S": "f32", "D": "f64", "C": "c64", "Z": "c128"}


def without_comments(name):
    with open(name) as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def probed(files):
    """Products that tables cublas_*.csv have, as (operation, type, columns)."""
    rows = [row for name in files for row in without_comments(name) if row["group"] in ("tsmm", "tsmttsm")]
    return [(row["group"], LETTERS[row["dtype"]], int(re.match(r"M=N=(\d+) ", row["case"])[1])) for row in rows]


def generated(files):
    """Seconds that a row takes by the kernels of tables tsmgen_*.csv, by (operation, type, columns)."""
    rows = [row for name in files for row in without_comments(name)]
    return {(row["op"], LETTERS[row["dtype"]], int(row["M=N"])): float(row["ms"]) / 1e3 / int(row["K"]) for row in rows}


class Judge:
    """Says how many points hold."""

    def __init__(self, lists, limits):
        self.lists = lists
        self.limits = limits

    def say(self, line):
        print(line)

    def of(self, what, points):
        """Points are (the point or its name, what they reach, what they should)."""
        below = below_goal(points)
        self.say(f"{len(points) - len(below):5} of {len(points):5}  {what}")
        if self.lists:
            for point, reached, goal in below:
                self.say(f"               {point}: {reached:.3f} of {goal:.2f}")

    def at_limit(self, points):
        """Of points that are below their goal: how many take hardly longer than their limit, where one is known."""
        known = [(p, self.limits[limit_key(p.row)]) for p in points if limit_key(p.row) in self.limits]
        if known:
            at = sum(p.seconds / p.rows() <= limit / 0.98 for p, limit in known)
            self.say(f"               {at} of {len(known)} below it whose limit was measured take no longer than 1/0.98 of that")
        if self.lists:
            for p, limit in sorted(known, key=lambda known: known[1] / known[0].seconds * known[0].rows()):
                self.say(f"               {p}: {limit * p.rows() / p.seconds:.3f} of its limit")


class Commands(Judge):
    """Prints commands that tune what does not hold, and nothing else."""

    def __init__(self):
        super().__init__(False, {})
        self.printed = set()

    def say(self, line):
        pass

    def of(self, what, points):
        for point, _, _ in below_goal(points):
            if isinstance(point, Point) and point.tune() not in self.printed:
                print(point.tune())
                self.printed.add(point.tune())


def below_goal(points):
    """Those of (point, reached, goal) that are below their goal, the furthest first."""
    return sorted((p for p in points if p[1] < p[2] - 5e-4), key=lambda p: p[1] / p[2])


def goal_of_width(dtype, width):
    if dtype in ("f64", "c128"):
        return 0.95
    return 0.95 if width <= (32 if dtype == "f32" else 16) else 0.90


def skinny(files, machine, probed, generated, judge):
    def key(row):
        # Of the long side the latest counts, but where it is what is asked for.
        long = "k" if row["operation"] == "tsmttsm" else "m"
        sides = tuple(row[x] for x in "mnk" if x != long or row["figure"] == "short")
        return row["figure"], row["operation"], row["dtype"], sides, row["row_strides"], row["offsets"]

    figures = ("widths", "shapes", "strides", "short")
    rows = latest(files, key, lambda row: row["status"] == "correct" and row["figure"] in figures)
    widths = {(p.operation, p.dtype, p.n): p for p in (Point(row) for row in rows if row["figure"] == "widths")}
    for operation in ("tsmttsm", "tsmm"):
        for dtype in BYTES:
            points = [p for (o, d, n), p in sorted(widths.items()) if (o, d) == (operation, dtype) and n <= 64]
            if points:
                parts = [(p, p.of_roofline(machine), goal_of_width(dtype, p.n)) for p in points]
                judge.of(f"{operation} {dtype}: the part of R that is asked for, 1 to 64 columns; {mean(p for _, p, _ in parts):.3f} in the geometric mean", parts)
                judge.at_limit([p for p in points if p.of_roofline(machine) < goal_of_width(dtype, p.n) - 5e-4])
    judge.of("every width: 0.98 times cuBLAS", [(p, p.times_cublas, 0.98) for p in widths.values()])
    judge.say(f"               {mean(p.times_cublas for p in widths.values()):.2f} times cuBLAS in the geometric mean of every width")
    compared = [widths[product] for product in probed if product in widths]
    if compared:
        times = mean(p.times_cublas for p in compared)
        judge.say(f"               {times:.2f} times cuBLAS in the geometric mean of {len(compared)} products whose columns are in a table of it, of 2.60")
    theirs = [(widths[product], seconds) for product, seconds in generated.items() if product in widths]
    if theirs:
        judge.of("every width in a table of tsmgen: 0.98 times its kernel", [(p, seconds * p.rows() / p.seconds, 0.98) for p, seconds in theirs])
    for figure, what in (("shapes", "M and N that differ"), ("strides", "padded rows and unaligned starts")):
        points = [Point(row) for row in rows if row["figure"] == figure]
        # Tables of before 2026-11-26 have fractions of another roofline; of padded rows there is a later one.
        part = (lambda p: p.of_roofline(machine)) if figure == "shapes" else (lambda p: p.fraction)
        judge.of(f"{what}: 0.90 of R up to 32 columns", [(p, part(p), 0.90) for p in points if p.width <= 32])
        judge.of(f"{what}: 0.98 times cuBLAS", [(p, p.times_cublas, 0.98) for p in points])
        if figure == "strides":
            below = [p for p in points if p.width <= 32 and part(p) < 0.90 - 5e-4]
            judge.at_limit(below)
            cannot = [p for p in below if p.completed(machine) < 0.90]
            judge.say(f"               {len(cannot)} of them cannot: sectors that are written in part are read first, at the bandwidth of reads or less")
            reach = sum(p.fraction / p.completed(machine) > 0.90 for p in below)
            judge.say(f"               {reach} of them reach 0.90 of R with those bytes")
    short = [Point(row) for row in rows if row["figure"] == "short"]
    length = lambda p: max(p.m, p.k)
    judge.of("short, 1e4: as fast as cuBLAS", [(p, p.times_cublas, 1.0) for p in short if length(p) == 10_000])
    part = lambda p: p.of_launches(machine)
    million = [p for p in short if length(p) == 1_000_000]
    judge.of("short, 1e6: two empty launches and bytes over bandwidth, of 1.15 times that", [(p, part(p), 1 / 1.15) for p in million])
    judge.at_limit([p for p in million if part(p) < 1 / 1.15 - 5e-4])
    longer = sum(p.arithmetic(machine) > 1.15 * part(p) * p.seconds for p in million)
    judge.say(f"               {longer} of them take longer than that at P, whatever their kernels do")


def layers(files, judge):
    keys = ("dtype", "m", "n", "k")
    rows = latest(files, lambda row: tuple(row[k] for k in keys), lambda row: row["dtype"] == "f32" and row["status"] == "correct")
    name = lambda row: f"{row['m']}x{row['n']}x{row['k']}"
    large = [row for row in rows if int(row["m"]) <= 16 and int(row["n"]) == 4096]
    judge.of("layers: 0.80 of R up to 16 rows of the two large ones", [(name(row), number(row["fraction"]), 0.80) for row in large])
    judge.of("layers: 0.98 times cuBLAS", [(name(row), number(row["times_cublas"]), 0.98) for row in rows])
    some = [number(row["times_cublas"]) for row in rows if 2 <= int(row["m"]) <= 64]
    judge.say(f"               {mean(some):.2f} times cuBLAS in the geometric mean of 2 to 64 rows")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+", help="tables tsm-*.csv, fc-*.csv and limits-*.csv of one GPU, and cublas_*.csv and tsmgen_*.csv")
    parser.add_argument("--list", action="store_true", help="list the points that are below their goal")
    parser.add_argument("--tune", action="store_true", help="print only a command for each of them that tunes it, as bench/queue.sh reads them")
    for name, value, what in (
        ("read", 4552, "GB/s of reads"),
        ("copy", 4314, "GB/s of reads and writes alike"),
        ("double", 56.4, "TFLOP/s in f64 and complex128"),
        ("single", 53.6, "TFLOP/s in f32 and complex64"),
    ):
        parser.add_argument(f"--{name}", type=float, default=value, help=f"{what} [default: {value}]")
    machine = parser.parse_args()
    for name in machine.tables:
        base = os.path.basename(name)
        if not os.path.isfile(name):
            parser.error(f"there is no table {name}; those that were measured are in bench/results")
        if not (base.startswith(("tsm-", "fc-", "limits-", "cublas_", "tsmgen_")) and base.endswith(".csv")):
            parser.error(f"{name} is no table of `bench tsm` or `bench fc`, of limits, or of others' kernels: they are named tsm-*.csv, fc-*.csv, limits-*.csv, cublas_*.csv and tsmgen_*.csv")
    kind = lambda prefix: [name for name in machine.tables if name.rsplit("/", 1)[-1].startswith(prefix)]
    judge = Commands() if machine.tune else Judge(machine.list, limits(kind("limits-")))
    if kind("tsm-"):
        skinny(kind("tsm-"), machine, probed(kind("cublas_")), generated(kind("tsmgen_")), judge)
    if kind("fc-"):
        layers(kind("fc-"), judge)


if __name__ == "__main__":
    # `| head` ends it without a complaint.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main()
