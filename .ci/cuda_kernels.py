#!/usr/bin/env python3
"""Compiles CUDA sources with NVIDIA's run-time compiler and reads the machine code; no card and no driver are needed.

    cuda_kernels.py SOURCES PACKAGES [RECORD] [--record]

SOURCES is a folder of `NAME.cu`, whose first line is `// steps N slices S arrays B`: steps times channels (or rows) that a unit works on at once, how many units
share those of a cube, whose effects on a state every one of them goes through in a short loop, and the bytes of its arrays. PACKAGES is a folder
into which the wheels nvidia-cuda-nvrtc, nvidia-cuda-runtime, nvidia-cuda-crt, nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm were unpacked. RECORD is a Markdown file with a
table, which --record writes; without it every kernel is checked against its row: no more than 16 bytes spilled beside the arrays, no more than a tenth more registers
or instructions, no fewer loads together.
"""

import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile

ARCHITECTURES = ["sm_80", "sm_90"]
# A few registers, once in eight steps.
MOST_SPILLED = 16
# What ends a stretch in which loads can be moved to the front.
BRANCHES = ("BRA", "CALL", "RET", "EXIT", "BAR", "BSYNC", "WARPSYNC", "JMP", "BRX")


class Compiler:
    def __init__(self, packages):
        libraries = glob.glob(f"{packages}/**/libnvrtc.so.*", recursive=True)
        if not libraries:
            sys.exit(f"error: no libnvrtc below {packages}; unpack the wheel nvidia-cuda-nvrtc there")
        os.environ["LD_LIBRARY_PATH"] = os.path.dirname(libraries[0])
        for builtins in glob.glob(f"{os.path.dirname(libraries[0])}/libnvrtc-builtins.so.*"):
            ctypes.CDLL(builtins)
        self.nvrtc = ctypes.CDLL(libraries[0])
        self.include = os.path.dirname(glob.glob(f"{packages}/**/cuda_fp16.h", recursive=True)[0])
        self.cuobjdump = glob.glob(f"{packages}/**/cuobjdump", recursive=True)[0]
        self.nvdisasm = glob.glob(f"{packages}/**/nvdisasm", recursive=True)[0]
        for program in (self.cuobjdump, self.nvdisasm):
            os.chmod(program, 0o755)
        os.environ["PATH"] = f"{os.path.dirname(self.nvdisasm)}:{os.environ['PATH']}"

    def cubin(self, source, architecture):
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        self.nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
        options = [f"--gpu-architecture={architecture}".encode(), f"--include-path={self.include}".encode()]
        code = self.nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        if code != 0:
            self.nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            self.nvrtc.nvrtcGetProgramLog(program, log)
            raise RuntimeError(log.value.decode())
        self.nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        self.nvrtc.nvrtcGetCUBIN(program, cubin)
        self.nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return cubin.raw

    def dump(self, cubin, *options):
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin)
            file.flush()
            return subprocess.run([self.cuobjdump, *options, file.name], check=True, capture_output=True, text=True).stdout


def instructions(sass):
    """Address and text of every instruction."""
    found = re.findall(r"/\*([0-9a-f]{4,})\*/\s+([^;]+?)\s*;", sass)
    return [(int(address, 16), text) for address, text in found]


def opcode(text):
    """The operation without its predicate."""
    return re.sub(r"^@!?U?P\w+\s+", "", text).split()[0].split(".")[0]


def loops(code):
    """First and last place of every loop: a branch to what was before."""
    found = []
    for at, (address, text) in enumerate(code):
        target = re.search(r"\bBRA\b.*?\b0x([0-9a-f]+)", text)
        if target and code[0][0] <= int(target.group(1), 16) < address:
            found.append((next(i for i, (other, _) in enumerate(code) if other >= int(target.group(1), 16)), at))
    return found


def loop(code):
    """The instructions of the longest loop; all where there is none."""
    first, last = max(loops(code), key=lambda ends: ends[1] - ends[0], default=(0, len(code) - 1))
    return code[first : last + 1]


def executed(body, slices):
    """Instructions of the loop `body`, those of short loops within as often as they are executed."""
    total = len(body)
    for first, last in loops(body):
        if (first, last) == (0, len(body) - 1):
            continue
        inner = body[first : last + 1]
        # Two loads from shared memory for each slice.
        loads = sum(opcode(text).startswith("LDS") for _, text in inner)
        if loads:
            total += len(inner) * (max(1, round(2 * slices / loads)) - 1)
    return total


def together(code):
    """The most loads from memory between two branches."""
    most = run = 0
    for _, text in code:
        operation = opcode(text)
        if operation.startswith("LDG"):
            run += 1
            most = max(most, run)
        elif operation in BRANCHES:
            run = 0
    return most


def measure(compiler, source, architecture):
    steps, slices, arrays = map(int, re.match(r"// steps (\d+) slices (\d+) arrays (\d+)", source).groups())
    cubin = compiler.cubin(source, architecture)
    usage = compiler.dump(cubin, "--dump-resource-usage")
    registers = int(re.search(r"REG:(\d+)", usage).group(1))
    # Memory of a unit's own: its arrays, where they are not in registers, and what is spilled.
    spilled = max(0, int(re.search(r"LOCAL:(\d+)", usage).group(1)) + int(re.search(r"STACK:(\d+)", usage).group(1)) - arrays)
    code = [(address, text) for address, text in instructions(compiler.dump(cubin, "--dump-sass")) if opcode(text) != "NOP"]
    body = loop(code)
    return registers, spilled, together(body), round(executed(body, slices) / steps)


def rows(record):
    """Name and architecture to the numbers of a table in Markdown."""
    found = {}
    for line in open(record) if os.path.exists(record) else []:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 6 and cells[1] in ARCHITECTURES:
            found[cells[0].strip("`"), cells[1]] = tuple(map(int, cells[2:]))
    return found


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--record"]
    if len(arguments) not in (2, 3):
        sys.exit(__doc__)
    compiler = Compiler(arguments[1])
    record = arguments[2] if len(arguments) == 3 else None
    expected = rows(record) if record else {}
    lines, faults, seen = [], [], set()
    for path in sorted(glob.glob(f"{arguments[0]}/*.cu")):
        name = os.path.basename(path)[:-3]
        for architecture in ARCHITECTURES:
            try:
                found = measure(compiler, open(path).read(), architecture)
            except RuntimeError as error:
                faults.append(f"{name}, {architecture}: {error}")
                continue
            seen.add((name, architecture))
            lines.append(f"| `{name}` | {architecture} | " + " | ".join(map(str, found)) + " |")
            registers, spilled, loads, per_step = found
            if spilled > MOST_SPILLED:
                faults.append(f"{name}, {architecture}: {spilled} bytes are spilled to memory, expected at most {MOST_SPILLED}")
            before = expected.get((name, architecture))
            if before is None:
                if record and "--record" not in sys.argv:
                    faults.append(f"{name}, {architecture}: it has no row in {record}; write it with --record")
            elif registers > before[0] * 1.1 or loads < before[2] or per_step > before[3] * 1.1 + 1:
                faults.append(f"{name}, {architecture}: registers, spilled bytes, loads together, instructions per step {found}, recorded {before}")
    if not lines:
        faults.append(f"no kernel was compiled of {arguments[0]}/*.cu")
    table = ["| kernel | architecture | registers | bytes spilled | loads together | instructions per step |", "|---|---|---|---|---|---|", *lines]
    if record and "--record" in sys.argv:
        text = open(record).read()
        start, end = text.index("| kernel | architecture |"), None
        end = text.find("\n\n", start)
        open(record, "w").write(text[:start] + "\n".join(table) + (text[end:] if end >= 0 else "\n"))
    else:
        faults += [f"{name}, {architecture}: it has a row in {record}, and was not compiled" for name, architecture in sorted(expected.keys() - seen)]
    print("\n".join(table))
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    sys.exit(1 if faults and "--record" not in sys.argv else 0)


main()
