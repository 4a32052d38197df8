"""Location of the tensors of a plan while it runs.

A plan has one arena, a block of bytes that each run has for itself. Planning decides for every value of the graph one
of four things:

- it is a *buffer* of the arena: a kernel writes it there, from its first step to its last read;
- it is a *view* of another value, as the output of a Reshape is, and its operation needs no step;
- it is *fresh* memory, allocated in each run: results, which outlive the run, and values passed to bodies and
  variables;
- it is returned by a reference kernel, which allocates it.

Two buffers share bytes only if no step needs both. A buffer may also be shared on purpose: a kernel may write over an
input that nothing reads later, and the parts of a Concat may be computed at their position in its output. The workspace
of kernels lies in the arena, too, during their steps.

- planned.py: an operation with its kernel (PlannedOperation), the decisions (Storage), and the bytes in use.
- layout.py: makes the decisions, for one operation after the other; parts of a Concat are computed in its output.
- views.py: which operations return views, and how a tensor lies in memory.
- arena.py: offsets of buffers, and bytes in use.
"""
