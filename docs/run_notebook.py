"""Run the cells of docs/notebook.ipynb and store their outputs, as text and as HTML.

    python docs/run_notebook.py

It needs no Jupyter: a cell's output is what its last expression shows in a notebook.
"""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parent / "notebook.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell in a namespace. Return its output in the format of notebooks, if it has one."""
    body = ast.parse(source).body
    if not body or not isinstance(body[-1], ast.Expr):
        exec(source, names)  # noqa: S102 - our own document
        return []
    exec(compile(ast.Module(body[:-1], []), "cell", "exec"), names)  # noqa: S102
    result = eval(compile(ast.Expression(body[-1].value), "cell", "eval"), names)  # noqa: S307
    data = {"text/plain": repr(result).splitlines(keepends=True)}
    # A picture is stored once, as an image: a page that shows a stored notebook removes pictures from HTML.
    for kind, method in (("image/svg+xml", "_repr_svg_"), ("text/html", "_repr_html_")):
        if hasattr(result, method):
            data[kind] = getattr(result, method)().splitlines(keepends=True)
            break
    return [{"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}]


def main() -> None:
    """Rewrite the notebook with the outputs of its cells."""
    os.chdir(NOTEBOOK.parent)
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    for count, cell in enumerate((cell for cell in notebook["cells"] if cell["cell_type"] == "code"), 1):
        cell["outputs"] = run_cell("".join(cell["source"]), names)
        cell["execution_count"] = count
        for output in cell["outputs"]:
            output["execution_count"] = count
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
