"""Classes of images, by a pipeline of Ray Data: read, run, write.

python samples/ray/classify.py samples/digits classes/
"""

import sys

import numpy as np
import ray

import irexec.ray
from irexec.tools.images import ImageOptions


def main(source: str, target: str) -> None:
    """Write a table with the class of every .png in a folder, or in a bucket such as s3://bucket/images."""
    images = ray.data.read_binary_files(source, include_paths=True, file_extensions=["png"])
    scores = images.map_batches(
        irexec.ray.Predictor,
        fn_constructor_args=("samples/digits/classifier.xml",),
        fn_constructor_kwargs={"column": "bytes", "image": ImageOptions(scale=(255.0,))},
        concurrency=2,
        batch_size=8,
    )
    classes = scores.map_batches(lambda batch: {"path": batch["path"], "digit": np.argmax(batch["probabilities"], axis=1)}, batch_size=256)
    classes.write_parquet(target)


if __name__ == "__main__":
    ray.init(num_cpus=3)
    main(sys.argv[1], sys.argv[2])
