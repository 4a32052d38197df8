"""Random changes of one weight or attribute in networks of many architectures: irexec compare has to name the layer.

The kinds of tests.sweep ``compare``: a network of tests/data/networks against a copy in which one thing is changed; with ``--renamed`` all layers and tensors of the
copy have other names, other ids and another order. ``compare-onnx``: small ONNX models, run by ONNX Runtime, against their changed IR.
``compare-openvino``: networks with a layer on which the CPU plugin is known to differ, in irexec against OpenVINO.
``compare-exporters``: pairs in a folder, an .onnx and the .xml that another exporter made of the same network, in which one thing is changed.

Which layer is right is decided by tests.compare_sweep.truth, which shares nothing with irexec.tools.compare: both models run with the
reference kernels, layers are identified by their position in the copy, and the values of each are compared by a formula of its own.
"""
