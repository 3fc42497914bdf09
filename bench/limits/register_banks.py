"""What the multiply-adds of f32 and complex64 in machine code ask of the register file.

    warpwright show tsmm --stage sass --size 1300000x64x64 --dtype f32 | python3 bench/limits/register_banks.py

Reads SASS (of compute capability 7.0 to 9.0) as nvdisasm or `show --stage sass` print it and looks, in every function, at
the innermost loop with the most multiply-adds. The register file has two banks, of even and of odd numbers, each of
which gives a warp one register in a cycle. For either bank and for each place of an operand, a register that is marked
`.reuse` is kept until that place reads another one of that bank (register_file.py measures this). The loop takes at least a cycle
for each instruction, and at least as many as the bank that is asked for more gives registers.
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
    """Multiply-adds, other instructions, and the registers that the multiply-adds read from either bank."""
    multiply_adds = others = 0
    read, kept = [0, 0], {}
    # Twice: what the end of the loop keeps is there when it begins again.
    for instruction in loop + loop:
        if not is_multiply_add(instruction):
            others += 1
            continue
        multiply_adds += 1
        registers = set()
        for place, operand in enumerate(instruction.split(None, 1)[1].split(",")[1:4]):
            if not (register := REGISTER.match(operand.strip())):
                continue
            number = int(register[1])
            if kept.pop((place, number % 2), None) != number:
                registers.add(number)
            if register[2]:
                kept[place, number % 2] = number
        if multiply_adds > sum(map(is_multiply_add, loop)):
            for number in registers:
                read[number % 2] += 1
    return multiply_adds // 2, others // 2, read


def main():
    print("multiply-adds  others  even  odd  cycles of one, at least  function")
    for name, instructions, labels in functions(sys.stdin.read()):
        multiply_adds, others, (even, odd) = demand(innermost_loop(instructions, labels))
        if multiply_adds:
            least = max(multiply_adds + others, even, odd) / multiply_adds
            print(f"{multiply_adds:13}  {others:6}  {even:4}  {odd:3}  {least:23.3f}  {name}")


if __name__ == "__main__":
    main()
