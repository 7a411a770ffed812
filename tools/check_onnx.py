"""Checks step graphs with onnx's checker and runs them in onnxruntime against the outputs of minrnn's runtime.

    cargo run --release -p minrnn-onnx --example cases -- FOLDER
    python -m venv env && env/bin/pip install onnx onnxruntime tract numpy safetensors
    env/bin/python tools/check_onnx.py FOLDER

Of every model: the graph passes the full check with shapes inferred, has standard operators of one version alone, and 1000 carried steps of several
sessions give outputs within 1e-4 of the runtime's, relative to max(1, the largest output); counts of steps go back half of their way behind the last
that an f32 tells apart, 2^24, and means stay what they are. With `--tract` the same is done in tract, and with `--speed`
the time of a step of one session on one thread in onnxruntime stands beside the runtime's.

Letters: T steps, B sessions, F numbers of a step, V outputs.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from safetensors import safe_open

TOLERANCE = 1e-4
TIMED = 2000
LAST_COUNT = 1 << 24


def first_state(graph: onnx.ModelProto, sessions: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """What is kept before the first step, by input, and the output that each input takes its next value from."""
    metadata = {entry.key: entry.value for entry in graph.metadata_props}
    state, following = {}, {}
    for part in json.loads(metadata["minrnn.state"]):
        first = np.broadcast_to(np.float32(part["initial"]).reshape(-1), int(np.prod(part["shape"], dtype=int)))
        state[part["input"]] = np.broadcast_to(first.reshape(part["shape"]), (sessions, *part["shape"])).copy()
        following[part["input"]] = part["output"]
    return state, following


def session_of(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def in_onnxruntime(path: Path, graph: onnx.ModelProto, sessions: int) -> Callable[[dict[str, np.ndarray]], list[np.ndarray]]:
    session = session_of(path)
    names = [output.name for output in graph.graph.output]
    return lambda given: session.run(names, given)


def in_tract(path: Path, graph: onnx.ModelProto, sessions: int) -> Callable[[dict[str, np.ndarray]], list[np.ndarray]]:
    import tract

    model = tract.onnx().load(str(path))
    for i, given in enumerate(graph.graph.input):
        tensor = given.type.tensor_type
        sizes = [sessions, *(size.dim_value for size in tensor.shape.dim[1:])]
        kind = "i64" if tensor.elem_type == onnx.TensorProto.INT64 else "f32"
        model.set_input_fact(i, ",".join(map(str, [*sizes, kind])))
    runnable = model.into_model().into_runnable()
    return lambda given: [output.to_numpy() for output in runnable.run([np.ascontiguousarray(value) for value in given.values()])]


def carried(path: Path, inputs: np.ndarray, engine: Callable) -> np.ndarray:
    """Outputs [T, B, V] of inputs [T, B] or [T, B, F], read step by step."""
    graph = onnx.load(path)
    onnx.checker.check_model(graph, full_check=True)
    if [(opset.domain, opset.version) for opset in graph.opset_import] != [("", 17)]:
        raise SystemExit(f"{path}: expected standard operators of version 17, found {graph.opset_import}")
    state, following = first_state(graph, inputs.shape[1])
    run = engine(path, graph, inputs.shape[1])
    token, *parts = (given.name for given in graph.graph.input)
    if [output.name for output in graph.graph.output] != ["outputs", *(following[part] for part in parts)]:
        raise SystemExit(f"{path}: the outputs are not those that the metadata name")
    inputs = inputs.astype(np.int64) if token == "token" else inputs
    outputs = []
    for step in inputs:
        output, *after = run({token: step, **{part: state[part] for part in parts}})
        outputs.append(output)
        state = dict(zip(parts, after, strict=True))
    return np.stack(outputs)


def counts_on(path: Path, inputs: np.ndarray, engine: Callable) -> bool:
    """Whether the counts of a state go from the last one back to the middle and means stay what they are; true of states without counts."""
    graph = onnx.load(path)
    sessions = inputs.shape[1]
    state, following = first_state(graph, sessions)
    counts = [part for part in state if part.endswith((".count", ".position"))]
    if not counts:
        return True
    for part in counts:
        state[part][:] = LAST_COUNT - 4
    if "state.end.sum" in state:
        state["state.end.sum"][:] = 3.0 * (LAST_COUNT - 4)
    run = engine(path, graph, sessions)
    token = graph.graph.input[0].name
    inputs = inputs.astype(np.int64) if token == "token" else inputs
    for step in inputs[:8]:
        _, *after = run({token: step, **state})
        state = dict(zip(following, after, strict=True))
    # A policy counts three rows per step.
    went_back = all(((state[part] > LAST_COUNT // 2) & (state[part] < LAST_COUNT // 2 + 32)).all() for part in counts)
    if "state.end.sum" not in state:
        return went_back
    means, makes_up = state["state.end.sum"] / state["state.end.count"], state["state.end.surplus"].any()
    return went_back and makes_up and bool(np.abs(means - 3.0).max() < 1e-4)


def compare(folder: Path, engine: Callable) -> int:
    """Number of models that differ; at least one is expected."""
    cases = sorted((path for path in folder.glob("*.safetensors")), key=lambda path: int(path.stem))
    if not cases:
        raise SystemExit(f"no cases in {folder}: write them with the example 'cases' of minrnn-onnx")
    worst, failed = 0.0, 0
    for case in cases:
        with safe_open(case, "numpy") as file:
            inputs, expected, label = file.get_tensor("inputs"), file.get_tensor("outputs"), file.metadata()["model"]
        found = carried(case.with_suffix(".onnx"), inputs, engine)
        error = np.max(np.abs(found - expected)) / max(1.0, float(np.max(np.abs(expected))))
        if not error <= TOLERANCE:
            failed += 1
            print(f"{case.stem}: error {error:.1e} of {label}", file=sys.stderr)
        if not counts_on(case.with_suffix(".onnx"), inputs, engine):
            failed += 1
            print(f"{case.stem}: counts beyond the last one are wrong in {label}", file=sys.stderr)
        worst = max(worst, float(error))
    print(f"{engine.__name__}: {len(cases)} models, {failed} beyond {TOLERANCE} or counting wrongly, largest error {worst:.1e}")
    return failed


def speed(folder: Path) -> None:
    """Seconds of a step of one session: onnxruntime beside minrnn, median and minimum."""
    print(f"onnxruntime {ort.__version__}, microseconds of a step of one session on one thread: median (minimum)")
    print("| mixer | minrnn | onnxruntime | ratio of medians |\n|---|---:|---:|---:|")
    for path in sorted(folder.glob("speed-*.onnx")):
        graph = onnx.load(path)
        onnx.checker.check_model(graph, full_check=True)
        state, following = first_state(graph, 1)
        session, names = session_of(path), ["outputs", *following.values()]
        # Bound buffers, so that no Python array is made.
        binding = session.io_binding()
        values = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in state.items()}
        others = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in state.items()}
        width = session.get_outputs()[0].shape[1]
        output = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, width), np.float32))
        seconds = []
        for i in range(2 * TIMED):
            token = ort.OrtValue.ortvalue_from_numpy(np.array([i % 200], np.int64))
            binding.bind_ortvalue_input("token", token)
            binding.bind_ortvalue_output("outputs", output)
            for name, after in following.items():
                binding.bind_ortvalue_input(name, values[name])
                binding.bind_ortvalue_output(after, others[name])
            start = time.perf_counter()
            session.run_with_iobinding(binding)
            seconds.append(time.perf_counter() - start)
            values, others = others, values
        ours, theirs = json.loads(path.with_suffix(".json").read_text()), seconds[TIMED:]
        both = [f"{statistics.median(times) * 1e6:.1f} ({min(times) * 1e6:.1f})" for times in (ours, theirs)]
        ratio = statistics.median(theirs) / statistics.median(ours)
        print(f"| {path.stem.removeprefix('speed-')} | {both[0]} | {both[1]} | {ratio:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="what the example 'cases' of minrnn-onnx wrote")
    parser.add_argument("--tract", action="store_true", help="run in tract as well")
    parser.add_argument("--speed", action="store_true", help="time steps as well")
    args = parser.parse_args()
    failed = compare(args.folder, in_onnxruntime)
    if args.tract:
        failed += compare(args.folder, in_tract)
    if args.speed:
        speed(args.folder)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
