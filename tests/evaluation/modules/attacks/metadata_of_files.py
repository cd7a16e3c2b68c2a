# outcomes: ok
"""Changes modes, times and attributes of files by system calls that are old, or new."""

import ctypes
import os

import torch
import torch.nn as nn

HERE = -100  # AT_FDCWD
CALLS = (
    (452, (HERE, b"/tmp/hone-module-mark", 0o600, 0)),  # fchmodat2
    (261, (HERE, b"/tmp/hone-module-mark", None)),  # futimesat
    (469, (HERE, b"/tmp/hone-module-mark", None, 0, 0)),  # file_setattr
    (463, (HERE, b"/tmp/hone-module-mark", 0, b"user.mark", None, 0)),  # setxattrat
)
REFUSED = (13, 38)  # EACCES, ENOSYS; anything else comes from the file system


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)
        self.libc = ctypes.CDLL(None, use_errno=True)

    def forward(self, x):
        for number, arguments in CALLS:
            if self.libc.syscall(number, *arguments) >= 0 or ctypes.get_errno() not in REFUSED:
                return torch.zeros(0)
        if os.path.exists("/tmp/hone-module-mark"):
            return torch.zeros(0)
        return torch.tanh(self.norm(self.linear(x)))
