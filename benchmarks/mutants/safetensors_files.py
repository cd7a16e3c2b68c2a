"""Reads and writes safetensors files (github.com/huggingface/safetensors)."""

import json
import math

import torch
from task_text import SAFETENSORS, safetensors

DTYPES = {name: dtype for dtype, name in SAFETENSORS.items()}


def read_safetensors(path):
    """Returns the tensors of a file by name."""
    content = bytearray(path.read_bytes())
    begin = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, facts in json.loads(content[8:begin]).items():
        if name == "__metadata__":
            continue
        dtype, shape = DTYPES[facts["dtype"]], facts["shape"]
        tensors[name] = torch.empty(shape, dtype=dtype)
        if tensors[name].numel() > 0:
            first = begin + facts["data_offsets"][0]
            flat = torch.frombuffer(content, dtype=dtype, count=math.prod(shape), offset=first)
            tensors[name].copy_(flat.reshape(shape))
    return tensors


def write_safetensors(path, tensors):
    """Writes tensors by name."""
    path.write_bytes(safetensors(tensors))
