"""The table of all mixers: one layer of each, forward and backward, ours and its fastest peer in turns.

    python benchmarks/compare.py --only mixers [--mixer mamba,s4] [--rounds 3]

All peers of a mixer run in the first round. Those that then take more than `BEHIND` times the least time of a peer cannot become
the fastest one and are left out of the other rounds, which saves most of the time.
"""

import argparse
import sys

from measuring import Peer, measure, merge, record

BEHIND = 1.5
SHAPE = {"d-model": 64, "d-hidden": 128, "batch-size": 64, "seq-len": 512}
QUICK = SHAPE | {"batch-size": 4, "seq-len": 64}
ITERATIONS = 5

SCANS = ("torch-loop", "torch-chunked", "torch-doubling", "mambapy")
CONVOLUTIONS = ("torch-fft", "torch-toeplitz")
MINIMAL = {"torch_layer.py": ("torch-loop", "torch-log-scan"), "jax_layer.py": ("jax-scan", "jax-associative-scan")}
# For each mixer, the scripts and the implementations they offer; GRU and LSTM are the cells of torch.nn.
PEERS: dict[str, dict[str, tuple[str, ...]]] = {
    "min-gru": MINIMAL,
    "min-lstm": MINIMAL,
    "gru": {"torch_layer.py": ("torch-nn",)},
    "lstm": {"torch_layer.py": ("torch-nn",)},
    "mamba": {"mamba_layer.py": ("torch-loop", "mambapy", "transformers", "transformers-mambapy")},
    "s6": {"mamba_layer.py": ("torch-loop", "mambapy")},
    "gilr": {"gated_layer.py": SCANS},
    "rwkv4": {"rwkv_layer.py": (*SCANS, "transformers")},
    "aaren": {"aaren_layer.py": ("torch-loop", "torch-scan", "torch-cumsum", "torch-quadratic")},
    "linear-attention": {"linear_attention_layer.py": ("torch-loop", "torch-quadratic", "torch-chunked", "torch-cumsum")},
    "ret-net": {"linear_attention_layer.py": ("torch-loop", "torch-quadratic", "torch-chunked")},
    "s-lstm": {"xlstm_layer.py": ("torch-loop", "xlstm")},
    "m-lstm": {
        "xlstm_layer.py": (
            "torch-loop",
            "torch-parallel",
            "torch-chunked",
            "xlstm",
            "mlstm-kernels-parallel",
            "mlstm-kernels-chunked",
        )
    },
    "attention": {"attention_layer.py": ("torch-sdpa", "torch-mha", "torch-softmax")},
    "s4": {"state_space_layer.py": CONVOLUTIONS},
    "s4d": {"state_space_layer.py": CONVOLUTIONS},
    "h3": {"state_space_layer.py": CONVOLUTIONS},
    "hyena": {"hyena_layer.py": CONVOLUTIONS},
    "hyena-filter": {"hyena_layer.py": CONVOLUTIONS},
    "signed-min-gru": {"gated_layer.py": SCANS},
    "decay-min-gru": {"gated_layer.py": (*SCANS, "torch-log-scan")},
    "delta": {"delta_layer.py": ("torch-loop", "torch-chunked")},
}


def peers_of(mixer: str) -> list[Peer]:
    return [Peer(script, impl, mixer) for script, impls in PEERS[mixer].items() for impl in impls]


def flags(args: argparse.Namespace, iterations: int) -> list[str]:
    shape = QUICK if args.quick else SHAPE
    sizes = [text for key, value in shape.items() for text in (f"--{key}", str(value))]
    return [*sizes, "--threads", str(args.threads), "--warmup", "1", "--iterations", str(2 if args.quick else iterations)]


def compare(mixer: str, args: argparse.Namespace) -> tuple[list[dict], list[str]]:
    """Merged lines of one mixer, ours first, and remarks on what could not be measured."""
    peers = peers_of(mixer)
    remarks = [f"{peer.name}: not installed" for peer in peers if not peer.installed]
    ours = [str(args.minrnn), "bench", "layer", "--mixer", mixer, "--json", *flags(args, ITERATIONS)]
    compiled = ["--compile"] if args.compile else []
    commands = {"minrnn": ours}
    for peer in peers:
        if peer.installed:
            commands[peer.impl] = peer.command(*flags(args, ITERATIONS))
            # The scripts of cells measured alone have no such flag, and loops of T steps take minutes to compile.
            if compiled and peer.script not in MINIMAL and peer.impl.startswith("torch-") and peer.impl != "torch-loop":
                commands[f"{peer.impl}+compile"] = commands[peer.impl] + compiled
    rounds: dict[str, list[dict]] = {}
    for turn in range(args.rounds):
        for name, command in list(commands.items()):
            print(f"{mixer}: round {turn + 1} of {args.rounds}, {name}", file=sys.stderr)
            found = measure(command)
            if isinstance(found, str) or not found:
                remarks.append(f"{name} {mixer}: {found or 'printed nothing'}")
                del commands[name]
            else:
                rounds.setdefault(name, []).append(found[0])
        times = {name: min(line["min_ms"] for line in lines) for name, lines in rounds.items() if name != "minrnn"}
        limit = BEHIND * min(times.values(), default=0)
        commands = {name: command for name, command in commands.items() if name == "minrnn" or times[name] <= limit}
    return [merge(lines) for lines in rounds.values()], remarks


def best(lines: list[dict]) -> dict | None:
    """The peer of the least median, among those that took part in all rounds."""
    peers = [line for line in lines if line["impl"] != "minrnn"]
    most = max((line["rounds"] for line in peers), default=0)
    return min((line for line in peers if line["rounds"] == most), key=lambda line: line["median_ms"], default=None)


def milliseconds(line: dict) -> str:
    return f"{line['median_ms']:.1f} / {line['min_ms']:.1f}"


def row(lines: list[dict]) -> str:
    ours = next((line for line in lines if line["impl"] == "minrnn"), None)
    peer = best(lines)
    if ours is None or peer is None:
        return f"| {lines[0]['mixer']} | {milliseconds(ours) if ours else 'failed'} | none | | | |"
    ratio = f"{ours['median_ms'] / peer['median_ms']:.3f}"
    peaks = f"{ours['peak_mib']:.0f} / {peer['peak_mib']:.0f}"
    name = f"{peer['impl']} ({peer['version']})"
    return f"| {ours['mixer']} | {milliseconds(ours)} | {name} | {milliseconds(peer)} | {ratio} | {peaks} |"


def table(mixers: list[str], args: argparse.Namespace) -> None:
    """Measures the mixers and prints the table, then all peers beside the fastest and what could not be measured."""
    columns = ["mixer", "ours, median / min ms", "fastest peer", "median / min ms", "ours ÷ it", "peak MiB, ours / it"]
    print("\n".join(["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]), flush=True)
    others, remarks = [], []
    for mixer in mixers:
        lines, remarked = compare(mixer, args)
        remarks += remarked
        if not lines:
            continue
        print(row(lines), flush=True)
        others += [f"{mixer}: " + ", ".join(f"{line['impl']} {line['median_ms']:.1f}" for line in lines if line["impl"] != "minrnn")]
        for line in lines:
            if line["impl"] != "minrnn" and line["iterations"] == 1:
                remarks.append(f"{line['impl']} {mixer}: more than a minute each, so one iteration a round")
        if not args.no_record and not args.quick:
            record(lines)
    print("\n".join(["", "All peers, median ms:", "", *(f"- {text}" for text in others), "", *remarks]).rstrip())
