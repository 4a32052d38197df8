"""The mutations, by what they break."""

from __future__ import annotations

from tests.mutations.table.convolutions import CONVOLUTIONS
from tests.mutations.table.integers import INTEGERS
from tests.mutations.table.kernels import KERNELS
from tests.mutations.table.memory import MEMORY
from tests.mutations.table.native import NATIVE
from tests.mutations.table.passes import PASSES
from tests.mutations.table.running import RUNNING
from tests.mutations.table.tools import TOOLS

MUTATIONS = (*PASSES, *MEMORY, *CONVOLUTIONS, *KERNELS, *NATIVE, *INTEGERS, *RUNNING, *TOOLS)
