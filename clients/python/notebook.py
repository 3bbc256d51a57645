"""Runs the notebooks of the package, and checks that they draw what they should."""

import pathlib
import sys

import nbclient
import nbformat

path = pathlib.Path(sys.argv[1])
notebook = nbformat.read(path, as_version=4)
nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
kinds = [kind for cell in notebook.cells for output in cell.get("outputs", []) for kind in output.get("data", {})]
if kinds.count("image/svg+xml") < 3 or "text/html" not in kinds:
    sys.exit(f"{path}: expected 3 pictures and a table, found {kinds}")
cells = sum(cell.cell_type == "code" for cell in notebook.cells)
print(f"{path.name}: {cells} cells, {kinds.count('image/svg+xml')} pictures")
