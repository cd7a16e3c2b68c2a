"""Finds tensors of a module that are views of one memory, which a task would draw independently."""

from source_file import Failure


def span_of(tensor):
    """Returns the first address of a tensor's elements, and the one behind the last."""
    steps = sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr(), tensor.data_ptr() + (steps + 1) * tensor.element_size()


def require_separate_memory(importer):
    """Raises Failure if a tensor of the task is a view of a learned parameter's memory."""
    tensors = {id(t): (name, t, True) for name, t in importer.model.named_parameters()}
    for node, name in importer.reference.parameters.items():
        constant = importer.constants[node]
        tensors.setdefault(id(constant), (name, constant, False))
    spans = sorted(
        (*span_of(t), name, is_learned)
        for name, t, is_learned in tensors.values()
        if not t.is_meta and t.numel() > 0
    )
    furthest = {True: (0, ""), False: (0, "")}  # of learned parameters, of all tensors
    for begin, end, name, is_learned in spans:
        other_end, other = furthest[not is_learned]
        if begin < other_end:
            raise Failure(
                f"{name} and {other} are views of the same memory, and a task would draw them "
                "independently; make the view in forward()"
            )
        for kind in {is_learned, False}:
            furthest[kind] = max(furthest[kind], (end, name))
