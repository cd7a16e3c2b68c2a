"""Writes, for each task, a document that captures the reference in a CUDA graph.

With these, `hone bench TASKS --references --variants FOLDER` measures what the launches of a
reference cost in addition to its kernels.

usage: python3 benchmarks/graph_variants.py FOLDER TASK.toml...
"""

import pathlib
import sys
import tomllib

DOCUMENT = """\
## Performance Analysis
What the host takes for its launches is saved, and nothing else.

## Algorithm Design
The reference, captured in one CUDA graph.

## Code Implementation
```toml
cuda_graph = true
```
```python
{reference}
```
"""


def main():
    """Writes the documents."""
    folder, *tasks = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    for path in tasks:
        task = tomllib.loads(path.read_text())
        document = DOCUMENT.format(reference=task["reference"].strip())
        (folder / f"{task['name']}.md").write_text(document)


if __name__ == "__main__":
    main()
