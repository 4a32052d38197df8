"""Models in pipelines of Ray Data: ``dataset.map_batches(irexec.ray.Predictor, fn_constructor_args=("model.xml",), ...)``."""

from irexec.integrations.ray_data import RayPredictor as Predictor

__all__ = ["Predictor"]
