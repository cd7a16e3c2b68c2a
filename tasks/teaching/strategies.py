"""Who works on a row: how threads share its elements, and how they combine what they found."""

from typing import NamedTuple

PARTS_WANTED = 1056  # blocks that keep a large GPU busy: eight for each of 132 processors
MIN_PART = 4096  # elements that are worth a block
MAX_ADDED = 65536  # elements that a thread may add up in float32


class ByThread:
    """A thread for each row: rows that are adjacent in memory, short ones, and the CPU."""

    guard = ""
    division = "a thread a row"
    leads = ""

    def __init__(self, block, is_alone=False):
        self.block = block
        self.rows_per_block = block
        self.is_alone = is_alone

    def begin(self, e):
        if self.is_alone:
            e.accumulator = "double"  # one thread adds up everything
        e.emit(f"const {e.integer} o = ({e.integer})blockIdx.x * blockDim.x + threadIdx.x;")
        e.emit(f"if (o >= {e.rows}) return;")

    def open_loop(self, e):
        e.open(f"for ({e.integer} r = 0; r < {e.length}; ++r)")

    def combine(self, e, state):
        pass


class ByWarp:
    """A warp for each row."""

    guard = ""
    division = "a warp a row"
    leads = "if ((threadIdx.x & 31) == 0) "

    def __init__(self, block):
        self.block = block
        self.rows_per_block = block // 32

    def begin(self, e):
        e.emit(f"const {e.integer} o = ({e.integer})blockIdx.x * {self.rows_per_block} "
               "+ (threadIdx.x >> 5);")  # fmt: skip
        e.emit(f"if (o >= {e.rows}) return;")

    def open_loop(self, e):
        e.emit(f"#pragma unroll {self.unroll}")
        e.open(f"for ({e.integer} r = threadIdx.x & 31; r < {e.length}; r += 32)")

    def combine(self, e, state):
        e.emit(f"{state} = device::over_warp({state});")


class ByBlock:
    """A block for each row."""

    guard = ""
    division = "a block a row"
    leads = "if (threadIdx.x == 0) "
    rows_per_block = 1

    def __init__(self, block, length=0):
        self.block = block
        self.is_exact = length > MAX_ADDED * block

    def begin(self, e):
        if self.is_exact:
            e.accumulator = "double"
        e.emit(f"const {e.integer} o = blockIdx.x;")

    def open_loop(self, e):
        e.emit(f"#pragma unroll {self.unroll}")
        e.open(f"for ({e.integer} r = threadIdx.x; r < {e.length}; r += {self.block})")

    def combine(self, e, state):
        e.emit(f"{state} = device::over_block<{self.block}>({state});")


class ByPart(ByBlock):
    """A block for a part of each row; a kernel for each pass, and scratch memory between them."""

    def __init__(self, block, parts):
        super().__init__(block)
        self.parts = parts
        self.begins_whole = False  # the block has a row, no part of one

    @property
    def division(self):
        return super().division if self.begins_whole else f"{self.parts} blocks a row"

    def begin(self, e):
        if self.begins_whole:
            super().begin(e)
            return
        e.emit(f"const {e.integer} o = blockIdx.x / {self.parts};")
        e.emit(f"const {e.integer} size = ({e.length} + {self.parts - 1}) / {self.parts};")
        e.emit(f"const {e.integer} start = (blockIdx.x % {self.parts}) * size;")
        e.emit(f"const {e.integer} end = start + size < {e.length} ? start + size : {e.length};")

    def open_loop(self, e):
        e.emit(f"#pragma unroll {self.unroll}")
        e.open(f"for ({e.integer} r = start + threadIdx.x; r < end; r += {self.block})")

    def save(self, e, state, out):
        e.emit(f"{self.leads}device::keep({out}, blockIdx.x, {state});")

    def restore(self, e, v, scratch):
        """Combines what the blocks of an earlier kernel found in the parts of this row."""
        state = e.new_state(v)
        e.open(f"for (int part = threadIdx.x; part < {self.parts}; part += {self.block})")
        e.emit(f"device::add_kept({state}, {scratch}, o * {self.parts} + part);")
        e.close()
        self.combine(e, state)
        e.results[id(v)] = state


class ByTile:
    """A block of 32 rows that are adjacent in memory, and several threads for each."""

    leads = "if (is_row && threadIdx.y == 0) "
    guard = "if (is_row) "
    rows_per_block = 32

    def __init__(self, height):
        self.height = height
        self.block = (32, height)

    @property
    def division(self):
        return f"{self.height} threads a row, 32 rows a block"

    def begin(self, e):
        e.emit(f"const {e.integer} row = ({e.integer})blockIdx.x * 32 + threadIdx.x;")
        e.emit(f"const bool is_row = row < {e.rows};")
        e.emit(f"const {e.integer} o = is_row ? row : {e.rows} - 1;")

    def open_loop(self, e):
        e.emit(f"#pragma unroll {self.unroll}")
        e.open(f"for ({e.integer} r = threadIdx.y; r < {e.length}; r += {self.height})")

    def combine(self, e, state):
        e.emit(f"{state} = device::over_tile<{self.height}>({state});")


class Rows(NamedTuple):
    """The rows of a kernel in the timed case.

    adjacent: how many of them are adjacent in memory, element by element.
    """

    count: int
    length: int
    adjacent: int


def _by_thread(rows, choices):
    return ByThread(choices.block, is_alone=choices.is_serial or rows.length > MAX_ADDED)


def _by_warp(rows, choices):
    return ByWarp(choices.block)


def _by_block(rows, choices):
    block = 1024 if rows.length >= 8192 else 512 if rows.length >= 2048 else 256
    return ByBlock(choices.row_block or block, rows.length)


def _by_part(rows, choices):
    parts = 2
    while parts * rows.count < PARTS_WANTED and rows.length // (2 * parts) >= MIN_PART:
        parts *= 2
    return ByPart(choices.row_block or 512, parts)


def _by_tile(rows, choices):
    height = choices.row_block // 32 if choices.row_block else 32 if rows.count < 16384 else 16
    return ByTile(height)


# How each is made, and for which rows it can pay. All are right for all rows.
STRATEGIES = {
    "thread": (_by_thread, lambda rows: rows.length <= 1024 and rows.count >= 1024),
    "warp": (_by_warp, lambda rows: 8 <= rows.length <= 8192 and rows.adjacent < 16),
    "block": (_by_block, lambda rows: rows.length >= 128 and rows.adjacent < 16),
    "part": (_by_part, lambda rows: rows.length >= 2048 and rows.adjacent < 16),
    "tile": (_by_tile, lambda rows: rows.length >= 8 and rows.adjacent >= 16),
}


def _default(rows, choices):
    if choices.is_serial or rows.length <= 16:
        return "thread"
    if rows.adjacent >= 16:
        return "thread" if rows.count >= 65536 or rows.length < 32 else "tile"
    if rows.length <= 512 and rows.count >= 256:
        return "warp"
    is_split = rows.length >= 16 * MIN_PART and rows.count < PARTS_WANTED // 4
    return "part" if choices.splits and is_split else "block"


def strategy_for(domain, choices, timed):
    rows = Rows(
        domain.rows().values[timed],
        domain.row_length().values[timed],
        domain.inner().values[timed],
    )
    name = _default(rows, choices)
    if choices.rows is not None and STRATEGIES[choices.rows][1](rows):
        name = choices.rows
    strategy = STRATEGIES[name][0](rows, choices)
    strategy.unroll = choices.unroll
    is_scattered = name == "thread" and rows.adjacent < 16 and rows.length > 1
    strategy.team = "scattered" if is_scattered else name
    return strategy
