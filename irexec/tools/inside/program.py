"""Compiles a model with OpenVINO and keeps the file of its cache, unencrypted: a program that needs the release alone.

python program.py MODEL FOLDER PRECISION

Source: OpenVINO's documentation, "Model Caching Overview": CACHE_DIR, and the callbacks of CACHE_ENCRYPTION_CALLBACKS.
"""

import sys


def same(text: bytes) -> bytes:
    """A callback that encrypts nothing."""
    return text


def main(model: str, folder: str, precision: str) -> None:
    """Write the file of the cache into the folder; print the version."""
    # In the function, so that irexec may be imported whole without OpenVINO.
    try:
        from openvino import Core, get_version
    except ImportError:
        # Releases before 2023.1.
        from openvino.runtime import Core, get_version
    core = Core()
    source = core.read_model(model)
    properties = {"CACHE_DIR": folder, "INFERENCE_PRECISION_HINT": precision}
    callbacks = {"CACHE_ENCRYPTION_CALLBACKS": [same, same]}
    try:
        core.compile_model(source, "CPU", dict(properties, **callbacks))
    except (RuntimeError, TypeError):
        # Releases before 2024.4 have no callbacks.
        core.compile_model(source, "CPU", properties)
    print(get_version())


if __name__ == "__main__":
    main(*sys.argv[1:])
