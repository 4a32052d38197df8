"""The share of each layer in the error of a model with fewer bits."""

from irexec.tools.sensitivity.result import LayerSensitivity, MixedPrecision, Sensitivity
from irexec.tools.sensitivity.run import SensitivityOptions, sensitivity

__all__ = ["LayerSensitivity", "MixedPrecision", "Sensitivity", "SensitivityOptions", "sensitivity"]
