"""Makes the tensors of a file several times, to find what holds in all of them."""

import functools
import re

import torch
from module_tensors import differing_numbers, loose_tensors, named_tensors
from source_file import Failure, bytes_of, tensors_of

# Draws that are compared: of large tensors, and of those with at most SMALL_BYTES.
SAMPLES, SAMPLES_OF_SMALL = 4, 32
SMALL_BYTES = 1 << 20
NUMBERS = (bool, int, float, complex, str)
MODEL_BYTES = 64 << 20  # most of a module whose parameters are all compared

# Signs of numbers that a file draws, or computes from tensors.
MAY_DRAW_NUMBERS = re.compile(r"random|\b(item|float|int|bool|tolist|numpy)\(")


class FileSamples:
    """The tensors of the file of an `Importer` for several seeds, each a list. What cannot be made
    is left out, and so is a file whose tensors are too large to be real."""

    def __init__(self, importer):
        self.importer = importer

    @functools.cached_property
    def inputs(self):
        """By place among the inputs."""
        source = self.importer.source

        def make(seed):
            with source.doing("making the inputs"):
                return dict(enumerate(tensors_of(source.inputs("cpu", seed))))

        return self.made_again(make)

    @functools.cached_property
    def model(self):
        """The module's tensors, by name."""

        def make(seed):
            with self.importer.source.doing("making the Model"):
                made = self.importer.source.model("cpu", seed)
                return named_tensors(made) | loose_tensors(made)

        return self.made_again(make)

    @functools.cached_property
    def is_of_small_module(self):
        return bytes_of(named_tensors(self.importer.model).values()) <= MODEL_BYTES

    def of_parameter(self, name, is_needed=False):
        """Returns a parameter or buffer of a small module, or of any if that `is_needed`."""
        return self.model.get(name, []) if is_needed or self.is_of_small_module else []

    @functools.cached_property
    def numbers_of_model(self):
        """Name and values of each number that the module holds and that differs between seeds."""
        im = self.importer
        if not MAY_DRAW_NUMBERS.search(im.source.text):
            return []
        on_meta = any(t.is_meta for t in named_tensors(im.drawn_model).values())
        try:
            with im.source.doing("making the Model"):
                other = im.source.model("meta" if on_meta else "cpu", 2)
        except Failure:
            return []
        return differing_numbers(im.drawn_model, other)

    def require_same_numbers(self):
        """Raises Failure if arguments that are no tensors differ from seed to seed."""
        for make in (self.importer.source.inputs, self.importer.source.init_inputs):
            for values in self.numbers_of(make):
                other = next((v for v in values if v != values[0] and v == v), None)
                if other is not None:
                    raise Failure(
                        "it draws an argument of Model or forward() that is no tensor: "
                        f"{values[0]!r} in one call, {other!r} in another; a task has one value "
                        "there. Give it one, or make a tensor of it"
                    )

    def numbers_of(self, make):
        """Returns the values with several seeds of each argument that is a number or a text.

        make: a function of a device and a seed that returns arguments.
        """
        for device in ("meta", "cpu") if self.importer.is_real else ("meta",):
            try:  # not every operator has a form for the meta device
                first = torch.utils._pytree.tree_leaves(make(device, 1))
                places = [i for i, v in enumerate(first) if isinstance(v, NUMBERS)]
                seeds = range(2, SAMPLES_OF_SMALL + 1) if places else ()
                others = [torch.utils._pytree.tree_leaves(make(device, seed)) for seed in seeds]
            except Exception:
                continue
            return [[first[i], *(o[i] for o in others if i < len(o))] for i in places]
        return []

    def made_again(self, make):
        """Returns lists of tensors by key. make: a function that makes the tensors of a seed."""
        if not self.importer.is_real:
            return {}
        samples = {}
        try:
            first = make(1)
            count = SAMPLES_OF_SMALL if bytes_of(first.values()) <= SMALL_BYTES else SAMPLES
            for seed in range(1, count + 1):
                for key, tensor in (first if seed == 1 else make(seed)).items():
                    samples.setdefault(key, []).append(tensor.detach())
        except Failure:
            return {}
        return samples
