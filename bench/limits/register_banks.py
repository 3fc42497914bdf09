"""What the multiply-adds of f32 and complex64 in machine code ask of the register file.

    warpwright show tsmm --stage sass --size 1300000x64x64 --dtype f32 | python3 bench/limits/register_banks.py

Reads SASS (of compute capability 7.0 to 9.0) as nvdisasm or `show --stage sass` print it and looks, in every function, at
the innermost loop with the most multiply-adds. The register file has two banks, of even and of odd numbers, each of
which gives a warp one register in a cycle; an operand that the instruction before has read in the same place, marked
`.reuse` there, is not read again. A multiply-add takes as many cycles as the bank that it asks for more has to give it
registers, any other instruction one (register_banks.cu measures this).
"""

import re
import sys

INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([^;]+);")
LABEL = re.compile(r"^\s*(\.L_x_\d+):")
REGISTER = re.compile(r"[-|~!]*R(\d+)(\.reuse)?")


def functions(text):
    """Each function's instructions, and where its labels stand among them."""
    for part in re.split(r"\.section\s+\.text\.|^\s*Function\s*:", text, flags=re.M)[1:]:
        instructions, labels = [], {}
        for line in part.splitlines():
            if label := LABEL.match(line):
                labels[label[1]] = len(instructions)
            elif instruction := INSTRUCTION.search(line):
                instructions.append(instruction[1].strip())
        yield re.split(r"[\s,]", part.strip(), maxsplit=1)[0].strip('"'), instructions, labels


def is_multiply_add(instruction):
    return instruction.startswith("FFMA")


def innermost_loop(instructions, labels):
    """Of the loops that contain no other, the one with the most multiply-adds."""
    loops = []
    for at, instruction in enumerate(instructions):
        target = re.search(r"\bBRA\b.*?(\.L_x_\d+)", instruction)
        if target and labels.get(target[1], at + 1) <= at:
            loops.append((labels[target[1]], at + 1))
    inner = [a for a in loops if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    return max((instructions[a:b] for a, b in inner), key=lambda x: sum(map(is_multiply_add, x)), default=[])


def demand(loop):
    """Multiply-adds, other instructions, and the cycles that the multiply-adds take."""
    multiply_adds = others = cycles = 0
    cached = {}
    for instruction in loop:
        if not is_multiply_add(instruction):
            others += 1
            cached = {}
            continue
        operands = instruction.split(None, 1)[1].split(",")[1:4]
        read, kept = set(), {}
        for place, operand in enumerate(operands):
            if register := REGISTER.match(operand.strip()):
                if cached.get(place) != register[1]:
                    read.add(int(register[1]))
                if register[2]:
                    kept[place] = register[1]
        multiply_adds += 1
        cycles += max(1, *(sum(r % 2 == bank for r in read) for bank in (0, 1)))
        cached = kept
    return multiply_adds, others, cycles


def main():
    print("multiply-adds  others  cycles of one  started in a cycle  function")
    for name, instructions, labels in functions(sys.stdin.read()):
        multiply_adds, others, cycles = demand(innermost_loop(instructions, labels))
        if multiply_adds:
            started = multiply_adds / (cycles + others)
            print(f"{multiply_adds:13}  {others:6}  {cycles / multiply_adds:13.3f}  {started:18.3f}  {name}")


if __name__ == "__main__":
    main()
