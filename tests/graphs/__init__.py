"""Random graphs of many operations: what the compiled plan computes is what the reference kernels compute.

    python -m tests.fuzz --target graphs --cases 1000 --workers 2
    python -m tests.graphs.statistics --cases 1000
    python -m tests.sweep graphs --cases 1000

- growth.py: a graph that grows; the arrays of every tensor are known, so that a graph has no NaN it was not meant to have.
- steps/: what a graph grows by, a file for each kind of step; any operation of the registry is one of them.
- making.py: a whole graph with its inputs, from random numbers.
- agreement.py: what two runs of one graph may differ by.
- running.py: the ways in which a graph is run.
- choices.py: kernels chosen at random, and short blocks.
- kinds.py, statistics.py: what graphs have and what their plans do, and how often that comes up.
- openvino.py: the same graphs in OpenVINO.
"""
