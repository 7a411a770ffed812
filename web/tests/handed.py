"""C in the round of a state: goes on from what the example `handed_state` left, and saves it for the browser. Usage: handed.py LIBRARY ROUND"""

import base64
import json
import sys
from pathlib import Path

from native import TOLERANCE, Library, farthest


def main(library, folder):
    library, folder = Library(library), Path(folder)
    for name, legs in json.loads((folder / "legs.json").read_text()).items():
        model = library.model(folder / f"{name}.minrnn")
        session = library.restored(model, (folder / f"{name}.state").read_bytes())
        leg = legs["c"]
        steps = zip(leg["tokens"], leg["logits"], strict=True)
        worst = max(farthest(library.read_tokens(session, [token], len(expected)), expected) for token, expected in steps)
        print(f"{name} in C: at most {worst:.1e} apart")
        if not worst <= TOLERANCE:
            sys.exit(f"{name}: {worst:.1e} apart, tolerance {TOLERANCE:.0e}")
        (folder / f"{name}.c").write_bytes(base64.b64decode(library.saved(session)))


main(*sys.argv[1:])
