"""A script that records the tensors of every module of a PyTorch model, for ``compare``."""

from __future__ import annotations

from pathlib import Path

from irexec.io.files import new_file
from irexec.io.writer import check_file


def record_torch(output: str) -> None:
    """Write the script, which needs torch and numpy alone.

    Raises:
        InputError: the file cannot be written.
    """
    check_file("--record-torch", Path(output), {})
    with new_file(Path(output)) as file:
        file.write(_SCRIPT.encode())


_SCRIPT = '''"""Record what every module of a PyTorch model gives:

    from record import record
    record(model, "torch.npz", *arguments, **keywords)

irexec compare torch.npz model.xml finds the first module whose tensor differs.
"""

import inspect

import numpy as np
import torch


def record(model, path, *arguments, **keywords):
    arrays, keys, kept, calls, types, devices = {}, {}, [], {}, set(), set()

    def tensors(value):
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (dict, list, tuple)):
            for one in value.values() if isinstance(value, dict) else value:
                yield from tensors(one)

    def identity(tensor):
        # A module that works in place gives another tensor.
        return id(tensor), 0 if tensor.is_inference() else tensor._version

    def store(key, value):
        for i, tensor in enumerate(tensors(value)):
            keys.setdefault(identity(tensor), f"{key}[{i}]")
            kept.append(tensor)
            types.add(tensor.dtype)
            devices.add(tensor.device.type.upper())
            tensor = tensor.detach().cpu()
            arrays[f"{key}[{i}]"] = (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy().copy()

    def hook(scope):
        def record_output(module, inputs, output):
            calls[scope] = calls.get(scope, 0) + 1
            call = f"{scope}#{calls[scope]}"
            arrays[f"source:{call}"] = np.array([keys.get(identity(tensor), "") for tensor in tensors(inputs)])
            store(f"module:{call}", output)

        return record_output

    names = inspect.signature(model.forward).parameters
    for name, value in {**dict(zip(names, arguments)), **keywords}.items():
        store(f"input:{name}", value)
    hooks = [module.register_forward_hook(hook(scope)) for scope, module in model.named_modules()]
    with torch.no_grad():
        model(*arguments, **keywords)
    for one in hooks:
        one.remove()
    is_cuda, arithmetic = "CUDA" in devices, "f32"
    if torch.bfloat16 in types or torch.float16 in types:
        arithmetic = "bf16" if torch.bfloat16 in types else "f16"
    elif is_cuda and (torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32):
        arithmetic = "tf32"
    device = "CUDA" if is_cuda else min(devices)
    arrays["irexec.arithmetic"] = np.array(f"{arithmetic} of PyTorch {torch.__version__} on {device}")
    np.savez(path, **arrays)
'''
