"""Refused: the file builds an extension."""

from torch.utils.cpp_extension import load_inline
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)
        self.norm = nn.BatchNorm1d(outputs)

        self.extension = load_inline(
            name="tail",
            cpp_sources="torch::Tensor tail(torch::Tensor x);",
            cuda_sources="torch::Tensor tail(torch::Tensor x) { return x; }",
            functions=["tail"],
        )

    def forward(self, x):
        return self.extension.tail(self.norm(self.linear(x)))
