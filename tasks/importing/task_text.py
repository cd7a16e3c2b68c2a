"""Writes the text of task files and the bytes of safetensors files."""

import ctypes
import json
import struct

import torch
from task_dtypes import DTYPES
from toml_strings import basic_string, quoted, source_string

# The names of types in safetensors files.
SAFETENSORS = {
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float64: "F64",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.bool: "BOOL",
}


def tensor_text(kind, tensor):
    """Returns an [[input]] or [[parameter]] table; `kind` is one of the two words.

    tensor: a dict of name, shape (numbers and sizes' names), dtype, init (an Init) or data (the
    name of a file), and fixed (may be absent).
    """
    shape = ", ".join(quoted(d) if isinstance(d, str) else str(d) for d in tensor["shape"])
    lines = [f"[[{kind}]]", f"name = {quoted(tensor['name'])}", f"shape = [{shape}]"]
    if tensor["dtype"] != torch.float32:
        lines.append(f"dtype = {quoted(DTYPES[tensor['dtype']])}")
    if tensor.get("data"):
        lines.append(f"data = {quoted(tensor['data'])}")
    elif tensor["init"].text() not in ("", '"normal"'):
        lines.append(f"init = {tensor['init'].text()}")
    elif tensor["init"].of == "normal" and tensor["dtype"] == torch.bool:
        lines.append('init = "normal"')
    if tensor.get("fixed"):
        lines.append("fixed = true")
    return "\n".join(lines)


def case_text(case):
    """Returns a [[case]] table.

    case: a dict of sizes by name (may be empty), timed, and on (kinds of device; may be empty).
    """
    lines = ["[[case]]"]
    if case["sizes"]:
        lines.append(
            "sizes = { "
            + ", ".join(f"{name} = {value}" for name, value in case["sizes"].items())
            + " }"
        )
    if case.get("timed"):
        lines.append("timed = true")
    if case.get("on"):
        lines.append("on = [" + ", ".join(quoted(kind) for kind in case["on"]) + "]")
    return "\n".join(lines)


def task_text(
    name,
    summary,
    reference,
    inputs,
    parameters,
    cases,
    has_result,
    source,
    is_relaxed=False,
    tier=None,
):
    """Returns the text of a task file.

    reference: TorchScript. inputs, parameters: see `tensor_text`. cases: see `case_text`.
    has_result: False if the outputs say nothing about the inputs. source: the module's Python file,
    or None. is_relaxed: if True, the task admits TF32. tier: how hard the task is, or None.
    """
    head = [f"name = {quoted(name)}", f"summary = {basic_string(summary)}"]
    if is_relaxed:
        head.append('precision = "relaxed"')
    if not has_result:
        head.append("has_result = false")
    if tier is not None:
        head.append(f"tier = {tier}")
    head.append(f"reference = {source_string(reference)}")
    parts = ["\n".join(head)]
    parts += (
        [tensor_text("input", t) for t in inputs]
        + [tensor_text("parameter", t) for t in parameters]
        + [case_text(c) for c in cases]
    )
    if source is not None:
        parts.append(f'[source]\nlanguage = "python"\ntext = {source_string(source)}')
    return "\n\n".join(parts) + "\n"


def safetensors(tensors):
    """Returns the bytes of a safetensors file with the given tensors by name.

    The file has the size of its header in 8 bytes, the header as JSON, and the tensors' values.
    """
    header, blobs, at = {}, [], 0
    for name, tensor in tensors.items():
        values = tensor.detach().contiguous()
        blob = (
            ctypes.string_at(values.data_ptr(), values.numel() * values.element_size())
            if values.numel()
            else b""
        )
        header[name] = {
            "dtype": SAFETENSORS[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + tensor.numel() * tensor.element_size()],
        }
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(blobs)
