"""Models in pipelines of Ray Data: ``dataset.map_batches(irexec.ray.Predictor, fn_constructor_args=("model.xml",),
...)``."""

from irexec.tools.batch.columns import ColumnPredictor as Predictor

__all__ = ["Predictor"]
