"""From a model to a plan: lowering, passes, selection of kernels, memory."""
