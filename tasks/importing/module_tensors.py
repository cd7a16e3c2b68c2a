"""The tensors of a module by the names that an exported graph gives them."""

import torch


def named_tensors(model):
    """Returns a module's parameters and buffers by name."""
    return dict(model.named_parameters(remove_duplicate=False)) | dict(
        model.named_buffers(remove_duplicate=False)
    )


def name_in(named, tensor):
    """Returns the name of the tensor in `named` that shares this one's memory, or None."""
    for name, other in named.items():
        if other is tensor or (
            other.device.type != "meta"
            and other.numel() > 0
            and other.data_ptr() == tensor.data_ptr()
            and other.shape == tensor.shape
            and other.stride() == tensor.stride()
            and other.dtype == tensor.dtype
        ):
            return name
    return None


def made_in_forward(program):
    """Returns the placeholders of the tensors that forward() makes of numbers in its text."""
    lifts = (torch.ops.aten.lift_fresh_copy.default, torch.ops.aten.lift_fresh.default)
    return {
        node.name
        for node in program.graph.nodes
        if node.op == "placeholder" and node.users and all(u.target in lifts for u in node.users)
    }


def loose_tensors(model):
    """Returns the tensors that are plain attributes of modules, by their names in a graph."""
    return {
        ".".join(filter(None, (path, name))): v
        for path, m in model.named_modules()
        for name, v in vars(m).items()
        if isinstance(v, torch.Tensor)
    }


def span_of(tensor):
    """Returns the first address of a tensor's elements, and the one behind the last."""
    steps = sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr(), tensor.data_ptr() + (steps + 1) * tensor.element_size()
