"""Whole networks: IRs that OpenVINO's own converter writes from published architectures with random weights.

    python -m tests.networks.build [names] -o DIR [--wide]     torch, transformers, nncf, openvino
    python -m tests.networks.check DIR [names]                 openvino
    python -m tests.networks.record DIR                        keeps the small ones under tests/data/networks

What is kept is read by tests/test_networks.py, which needs none of these packages.
"""
