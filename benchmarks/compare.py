"""Runs `minrnn bench` and the peers alternately and prints the table of ratios.

    cargo build --release
    python benchmarks/compare.py [--only lm,layer] [--quick]

The peers run with the present Python; one whose framework is missing is listed as "not installed". Every measurement
is a process of its own. Within a case the programs take turns for several rounds, so that a machine that slows down
slows all of them; the run in the middle is reported, with the least time of all rounds beside it. The results are
appended to benchmarks/records/<machine>.jsonl.
"""

import argparse
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import mixer_table
from measuring import HERE, Peer, measure, merge, record

BENCHES = ("scan", "layer", "lm", "decode", "prefill")
CLASSIC = {"min-gru": "gru", "min-lstm": "lstm"}  # the classic cell that each of ours is compared with
WEIGHT_FORMATS = ("f32", "bf16", "int8", "int4")


@dataclass(frozen=True)
class Comparison:
    """One amount of work, to be done by ours and by all peers."""

    bench: str
    mixer: str
    shape: tuple[tuple[str, int], ...] = ()
    peers: tuple[Peer, ...] = ()
    iterations: int = 5
    precisions: tuple[str, ...] = ("f32",)  # ours; each is compared with every peer

    @property
    def title(self) -> str:
        shape = [f"{key} {value}" for key, value in self.shape]
        return ", ".join([f"{self.bench} {self.mixer}".strip(), *shape])

    def flags(self) -> list[str]:
        return [text for key, value in self.shape for text in (f"--{key}", str(value))]


def comparisons(quick: bool, mixers: list[str]) -> list[Comparison]:
    """Everything there is to compare; `quick` keeps the kinds and cuts the sizes."""
    found = [Comparison("scan", "", peers=())]
    for mixer in mixers:
        layer_peers = tuple(mixer_table.peers_of(mixer))
        if mixer in CLASSIC:
            layer_peers += tuple(Peer("torch_layer.py", impl, CLASSIC[mixer]) for impl in ("torch-nn", "torch-loop"))
        for d_model, d_hidden in ((64, 128),) if quick else ((64, 128), (256, 512)):
            for seq_len in (64, 512) if quick else (64, 256, 512, 1024, 4096):
                shape = (("d-model", d_model), ("d-hidden", d_hidden), ("batch-size", 64), ("seq-len", seq_len))
                found.append(Comparison("layer", mixer, shape, layer_peers, 10 if seq_len < 1024 else 3))
        if mixer not in CLASSIC:
            continue

        lm_peers = (
            Peer("torch_lm.py", "torch-log-scan", mixer),
            Peer("torch_lm.py", "torch-log-scan", mixer, "bf16"),
            Peer("jax_lm.py", "jax-scan", mixer),
        )
        lm_shape = (("batch-size", 8), ("seq-len", 64)) if quick else (("batch-size", 64), ("seq-len", 256))
        found.append(Comparison("lm", mixer, lm_shape, lm_peers, 3, ("f32", "bf16")))

        for batch_size in (1, 64):
            shape = (("batch-size", batch_size), ("seq-len", 64 if quick else 256))
            peers = (Peer("torch_decode.py", "torch", mixer),)
            found.append(Comparison("decode", mixer, shape, peers, precisions=WEIGHT_FORMATS))
        prefill_peers = tuple(Peer("torch_decode.py", impl, mixer) for impl in ("torch-loop", "torch-log-scan"))
        for seq_len in (512,) if quick else (512, 2048):
            shape = (("batch-size", 1), ("seq-len", seq_len))
            found.append(Comparison("prefill", mixer, shape, prefill_peers, precisions=("f32", "bf16")))
    return found


def ours_command(case: Comparison, precision: str, args: argparse.Namespace) -> list[str]:
    mixer = ["--mixer", case.mixer, "--precision", precision] if case.mixer else []
    return [str(args.minrnn), "bench", case.bench, *mixer, *case.flags(), "--threads", str(args.threads), "--json"]


def peer_command(case: Comparison, peer: Peer, args: argparse.Namespace) -> list[str]:
    bench = [case.bench] if peer.script == "torch_decode.py" else []
    iterations = ["--iterations", str(2 if args.quick else case.iterations)]
    return peer.command(*bench, *case.flags(), "--threads", str(args.threads), *iterations)


def compare(case: Comparison, args: argparse.Namespace) -> tuple[list[dict], list[str]]:
    """Merged lines, ours first, and remarks on what could not be measured."""
    commands = {f"minrnn {precision}": ours_command(case, precision, args) for precision in case.precisions}
    commands |= {peer.name: peer_command(case, peer, args) for peer in case.peers if peer.installed}
    lines: dict[tuple[str, int], list[dict]] = {}
    remarks = {peer.name: "not installed" for peer in case.peers if not peer.installed}
    for turn in range(args.rounds):
        for name, command in commands.items():
            if name in remarks:
                continue
            print(f"{case.title}: round {turn + 1} of {args.rounds}, {name}", file=sys.stderr)
            found = measure(command)
            if isinstance(found, str):
                remarks[name] = found
                continue
            for index, line in enumerate(found):
                lines.setdefault((name, index), []).append(line)
    merged = [merge(rounds) for name in commands for key, rounds in lines.items() if key[0] == name]
    return merged, [f"{name}: {remark}" for name, remark in remarks.items()]


def scan_table(lines: list[dict]) -> list[str]:
    rows = ["| shape B, T, E | pass | median ms | min ms | GB/s | copy GB/s | share |", "|---" * 7 + "|"]
    for line in lines:
        shape = f"{line['batch_size']}, {line['seq_len']}, {line['d_hidden']}"
        share = f"{line['gb_per_s'] / line['copy_gb_per_s']:.0%}"
        speeds = f"{line['gb_per_s']:.1f} | {line['copy_gb_per_s']:.1f} | {share}"
        kind = line.get("pass") or line["mixer"]
        rows.append(f"| {shape} | {kind} | {line['median_ms']:.2f} | {line['min_ms']:.2f} | {speeds} |")
    return rows


def ratio_table(lines: list[dict]) -> list[str]:
    """One row per program; for each of our formats, our median divided by the row's."""
    ours = [line for line in lines if line["impl"] == "minrnn"]
    peers = [line for line in lines if line["impl"] != "minrnn"]
    ratios = [f"ours {line['precision']} ÷ it" for line in ours]
    columns = ["program", "cell", "format", "median ms", "min ms", "tokens/s", "GFLOP/s", "peak MiB", *ratios]
    rows = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for line in lines:
        cells = [line["impl"], line["mixer"], line["precision"], f"{line['median_ms']:.1f}", f"{line['min_ms']:.1f}"]
        cells += [f"{line['tokens_per_s']:.0f}", f"{line['gflop_per_s']:.1f}", f"{line['peak_mib']:.0f}"]
        cells += [f"{our['median_ms'] / line['median_ms']:.3f}" if line in peers else "–" for our in ours]
        rows.append("| " + " | ".join(cells) + " |")
    if ours and peers:
        counts = {line["parameters"] for line in lines if "parameters" in line and line["mixer"] == ours[0]["mixer"]}
        if len(counts) > 1:
            rows += ["", f"Not the same model: parameter counts {sorted(counts)}."]
    return rows


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minrnn", type=Path, default=HERE.parent / "target/release/minrnn", help="our binary")
    parser.add_argument("--only", default=",".join(BENCHES), help="some of %(default)s; or mixers, one table of all of them")
    parser.add_argument("--mixer", help="names, or all (default min-gru,min-lstm, and all for --only mixers)")
    parser.add_argument("--compile", action="store_true", help="with --only mixers, also torch.compile of the parallel forms")
    parser.add_argument("--seq-len", help="only these lengths, e.g. 512,4096")
    parser.add_argument("--d-model", help="only layers of these widths, e.g. 64")
    parser.add_argument("--impl", help="only these peers, e.g. torch-loop,torch-nn")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, help="turns of each program (default 3, quick 1)")
    parser.add_argument("--quick", action="store_true", help="small sizes and one round: does everything run?")
    parser.add_argument("--no-record", action="store_true", help="leave benchmarks/records alone")
    args = parser.parse_args()
    args.rounds = args.rounds or (1 if args.quick else 3)
    args.mixer = args.mixer or ("all" if args.only == "mixers" else "min-gru,min-lstm")
    args.mixer = list(mixer_table.PEERS) if args.mixer == "all" else args.mixer.split(",")
    if unknown := [mixer for mixer in args.mixer if mixer not in mixer_table.PEERS]:
        parser.error(f"no mixer {', '.join(unknown)}: expected some of {', '.join(mixer_table.PEERS)}")
    if not args.minrnn.is_file():
        parser.error(f"no program at {args.minrnn}: build it with `cargo build --release`, or give --minrnn PATH")
    return args


def main() -> None:
    args = parse()
    cases = comparisons(args.quick, args.mixer)
    cases = [case for case in cases if case.bench in args.only.split(",")]
    if args.seq_len:
        lengths = [int(text) for text in args.seq_len.split(",")]
        cases = [case for case in cases if dict(case.shape).get("seq-len") in lengths]
    if args.d_model:
        widths = [int(text) for text in args.d_model.split(",")]
        cases = [case for case in cases if dict(case.shape).get("d-model") in widths]
    if args.impl:
        chosen = args.impl.split(",")
        cases = [replace(case, peers=tuple(peer for peer in case.peers if peer.impl in chosen)) for case in cases]
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"warning: the machine is busy (load {load:.1f}); these times mean little", file=sys.stderr)
    if "mixers" in args.only.split(","):
        mixer_table.table(args.mixer, args)
    named = False
    for case in cases:
        lines, remarks = compare(case, args)
        if lines and not named:
            first, named = lines[0], True
            print(f"{first['machine']}; threads {first['threads']}; commit {first['commit']}\n")
        table = scan_table(lines) if case.bench == "scan" else ratio_table(lines)
        print("\n".join([f"### {case.title}", "", *table, *(text for remark in remarks for text in ("", remark)), ""]), flush=True)
        if not args.no_record and not args.quick:
            record(lines)


if __name__ == "__main__":
    main()
