"""The model that OpenVINO's CPU plugin runs after its transformations, in published operations."""

from irexec.tools.inside.run import Inside, InsideCheck, InsideOptions, check, inside

__all__ = ["Inside", "InsideCheck", "InsideOptions", "check", "inside"]
