"""Runs kernel mutants, and the honest documents that they were made of, on the CPU device."""

import json
import pathlib
import subprocess
import tempfile

from safetensors_files import read_safetensors, write_safetensors


class KernelRunner:
    """Talks with the program document_outputs.

    documents: the honest documents by task.
    """

    def __init__(self, program, documents):
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._folder = tempfile.TemporaryDirectory()
        self._documents = documents

    def honest_text(self, task, name):
        """Returns the document that a mutant was made of, or None."""
        found = [d for d in self._documents.get(task.name, []) if d.name == name]
        return found[0].text() if found else None

    def outputs(self, task, text, calls):
        """Returns the outputs of a document for each list of arguments, or a text that says why
        there are none."""
        folder = pathlib.Path(self._folder.name)
        places = []
        for number, values in enumerate(calls):
            place = {
                "arguments": str(folder / f"arguments_{number}"),
                "outputs": str(folder / f"outputs_{number}"),
            }
            named = {str(i): value for i, value in enumerate(values)}
            write_safetensors(pathlib.Path(place["arguments"]), named)
            places.append(place)
        request = {"task": str(task.path), "text": text, "calls": places}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("document_outputs has ended")
        problem = json.loads(answer)["problem"]
        if problem is not None:
            return problem
        outputs = [read_safetensors(pathlib.Path(place["outputs"])) for place in places]
        return [[found[str(i)] for i in range(len(found))] for found in outputs]
