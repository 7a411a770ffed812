"""Runs notebooks from their first cell to the last: ``run.py NOTEBOOK…`` keeps their outputs, ``run.py --check NOTEBOOK…`` changes nothing. Needs nbclient, nbformat and ipykernel."""

import pathlib
import sys
import tempfile

import nbformat
from nbclient import NotebookClient



def settled(outputs):
    """Outputs as a reader sees them: pieces of a stream together, without what was written over."""
    joined = []
    for output in outputs:
        if joined and output.output_type == "stream" and joined[-1].output_type == "stream" and output.name == joined[-1].name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    for output in joined:
        if output.output_type == "stream":
            lines = [line.rstrip("\r").rsplit("\r", 1)[-1].rstrip() for line in output.text.split("\n")]
            output.text = "\n".join(lines)
    return joined


check = "--check" in sys.argv
for path in map(pathlib.Path, [argument for argument in sys.argv[1:] if argument != "--check"]):
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as place:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": place}}).execute()
    # Neither when it ran nor what ran it.
    notebook.metadata = nbformat.from_dict({"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "language_info": {"name": "python"}})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = settled(cell.outputs)
        told = str(cell.get("outputs", ""))
        if place in told or str(pathlib.Path.home()) in told:
            sys.exit(f"{path}: an output names a folder of this machine")
    if not check:
        nbformat.write(notebook, path)
    print(f"{path}: {len(notebook.cells)} cells ran")
