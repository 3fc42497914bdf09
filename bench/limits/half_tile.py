#!/usr/bin/env python3
"""Half a tile: kernels of A C in complex128 whose last four columns take one real instruction, changed by hand, for in_turn.cu.

    bench/limits/half_tile.py BINARY DIRECTORY [WIDTH]...

and on as in_turn.py says. Of 57 to 60 columns the last of eight tiles is half empty: 480 instructions of 4 terms for 16 rows where 450 would do. For each
width (51, 52 and 57 to 60) DIRECTORY gets what ships, then kernels of eight parts of one warp that multiply complex numbers as they are, without and with
bases of lanes: as the program writes them, and with the last four columns as the eight real ones that they are made of. A real instruction of 8 terms takes the real and the
imaginary parts of 4 numbers of each row, as lanes hold them; in the place of the last tile of the small matrix stand pairs (u, -v) and (v, u) of its numbers u + iv, which
make the real and the imaginary part of a result.
"""

import pathlib
import re
import sys

from in_turn import entry, kernel, said

ROWS = 2 << 30
FORM = "copy=bulk store=bulk in_place=true team=part unit=mma wm=8 wn=1 rows=128 instruction=m16n8k4 bands=1 passing=false blocks=132 bounded=false numbers=whole"
SMALL = re.compile(r"Bs\[([^\[\]]+)\]\[c\] = [^;]*?B\[\(long long\)\(.+?\)\*ldb \+ c\][^;]*;", re.S)
INSTRUCTION = """__device__ __forceinline__ void last_columns(double2 (&d)[2], const double2 (&a)[2], const double2 (&b)[1]) {
    double s[4] = {d[0].x, d[0].y, d[1].x, d[1].y};
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(s[0]), "+d"(s[1]), "+d"(s[2]), "+d"(s[3])
        : "d"(a[0].x), "d"(a[1].x), "d"(a[0].y), "d"(a[1].y), "d"(b[0].x), "d"(b[0].y));
    d[0] = make_double2(s[0], s[1]);
    d[1] = make_double2(s[2], s[3]);
}

"""


def halved(text, n):
    """The text with the last columns so."""
    tiles, whole = (n + 7) // 8, n // 8 * 8

    def change(old, new):
        nonlocal text
        if text.count(old) != 1:
            raise SystemExit(f"the text for {n} columns has {text.count(old)} times: {old}")
        text = text.replace(old, new)

    text, small = SMALL.subn(
        lambda found: f"""{{
                const int column = c < {whole} ? c : {whole} + (c - {whole})/2, row = {found[1]};
                const double2 v = row < {n} && column < {n} ? B[(long long)row*ldb + column] : make_double2(0.0, 0.0);
                Bs[row][c] = c < {whole} ? v : c%2 == 0 ? make_double2(v.x, -v.y) : make_double2(v.y, v.x);
            }}""",
        text,
    )
    if small == 0:
        raise SystemExit(f"the small matrix of {n} columns is brought in another way")
    change(f"double2 mine[{tiles}][4] = {{}};", f"double2 mine[{tiles - 1}][4] = {{}}, last[2] = {{}};")
    products = f"for (int ni = 0; ni < {tiles}; ++ni) mma_m16n8k4_c128(mine[ni], a, b[ni]);"
    change(products, products.replace(f"< {tiles}", f"< {tiles - 1}") + f"\n                last_columns(last, a, b[{tiles - 1}]);")
    change(f"for (int jo = 0; jo < {tiles}; ++jo)", f"for (int jo = 0; jo < {tiles - 1}; ++jo)")
    slot = re.search(r"As\[\(8\*blk \+ w\)%\d+\]", text)[0]
    end = text.rindex("        }\n", 0, text.index("        if (beta0) {\n            if (alpha1)"))
    stores = f"""            #pragma unroll
            for (int r = 0; r < 2; ++r) {{
                const int i = 8*r + tid%32/4, j = {whole} + tid%4;
                if (j < {n}) {slot}[{n}*i + j] = 16896*blk + 128*g + 16*w + i < M ? last[r] : make_double2(0.0, 0.0);
            }}
            __syncwarp();
"""
    text = text[:end] + stores + text[end:]
    head = text.rindex("\n\n", 0, text.index("// Grid: ")) + 2
    return text[:head] + INSTRUCTION + text[head:]


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    binary, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    lines = []
    for width in sys.argv[3:] or ["51", "52", "57", "58", "59", "60"]:
        if not width.isdecimal() or int(width) % 8 not in (1, 2, 3, 4):
            raise SystemExit(f"{width} columns do not leave a tile of eight half empty; give widths as 51 or 60")
        n = int(width)
        rows, group = ROWS // (16 * n), f"A_C_{n}"
        lines.append(kernel(binary, directory, f"{group} {rows}x{n}x{n} --dtype c128 --layout nn", len(lines)))
        for base in ("false", "true"):
            parameters = [x for word in f"{FORM} lane_base={base}".split() for x in ("--param", word)]
            size = ["--size", f"{rows}x{n}x{n}", "--dtype", "c128", "--layout", "nn", "--gpu", "h200"]
            text = said(binary, "show", "tsmm", *size, "--stage", "cuda", *parameters)
            for text in (text, halved(text, n)):
                lines.append(entry(directory, len(lines), group, text, "c128", (rows, n, n), False))
    (directory / "list").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
