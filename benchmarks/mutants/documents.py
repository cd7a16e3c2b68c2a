"""Variant documents: reads the code of honest ones, and writes those of mutants."""

import itertools
import re

HEADING = re.compile(r"^##\s+Code\s+Implementation\s*$", re.MULTILINE)
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


class Document:
    """name: of the file. blocks: the code by language: toml, cuda, python."""

    def __init__(self, name, blocks):
        self.name, self.blocks = name, blocks

    def text(self, **changed):
        """Returns the document with some blocks replaced, and without its prose."""
        parts = ["## Code Implementation"]
        for language in ("toml", "cuda", "python"):
            code = changed.get(language, self.blocks.get(language))
            if code is not None:
                parts.append(f"```{language}\n{code.rstrip()}\n```")
        return "\n".join(parts) + "\n"


def read_documents(text, name):
    """Returns the documents of a corpus file, one for each combination of its sweep's values."""
    axes = []
    if text.startswith("sweep:"):
        line, text = text.split("\n", 1)
        for part in line.removeprefix("sweep:").split(","):
            axis, values = part.split("=")
            axes.append([(axis.strip(), value) for value in values.split()])
    documents = []
    for choice in itertools.product(*axes):
        filled = text
        for axis, value in choice:
            filled = filled.replace(f"${{{axis}}}", value)
        label = "".join(f" {axis}={value}" for axis, value in choice)
        documents.append(Document(name + label, blocks_of(filled)))
    return documents


def blocks_of(text):
    heading = HEADING.search(text)
    if heading is None:
        return {}
    code = text[heading.end() :]
    return {found[1].lower(): found[2] for found in FENCE.finditer(code)}


def find_documents(folder):
    """Returns the documents below a folder, FOLDER/TASK/*.md and FOLDER/TASK.md, by task."""
    by_task = {}
    for path in sorted(folder.rglob("*.md")):
        task = path.stem if path.parent == folder else path.parent.name
        by_task.setdefault(task, []).extend(read_documents(path.read_text(), path.stem))
    return by_task


def document_of_program(text):
    """Returns a document whose host program is `text`, without kernels."""
    return Document("", {"python": text}).text()
