"""The pieces of Python in the documents run, page by page, where the repository's models lie."""

import pathlib

import pytest

from conftest import MODELS, ROOT

PAGES = ["docs/python.md", "python/README.md"]


def blocks(page):
    """The pieces of Python of a page, and the numbers of their first lines."""
    found, lines = [], None
    for number, line in enumerate(ROOT.joinpath(page).read_text().splitlines(), 1):
        if lines is not None and line.strip() == "```":
            found.append((start, "\n".join(lines)))
            lines = None
        elif lines is not None:
            lines.append(line)
        elif line.strip() == "```python":
            lines, start = [], number + 1
    return found


@pytest.mark.parametrize("page", PAGES)
def test_the_pieces_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    # The front page names a model as if it lay beside it.
    for model in MODELS.iterdir():
        tmp_path.joinpath(model.name).symlink_to(model)
    tmp_path.joinpath("models").symlink_to(MODELS)
    monkeypatch.chdir(tmp_path)
    assert pathlib.Path("models/sensors.minrnn").exists()
    names, pieces = {}, blocks(page)
    assert pieces, f"{page} has no piece of Python"
    for line, piece in pieces:
        if "import torch" in piece:
            pytest.importorskip("torch")
        exec(compile("\n" * (line - 1) + piece, str(ROOT / page), "exec"), names)
    if page == "docs/python.md":
        assert "token id 99 is not known to the model, expected one below 65" in capsys.readouterr().out
