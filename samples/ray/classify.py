"""Classes of images, by a pipeline of Ray Data: read, run, write.

python samples/ray/classify.py samples/digits classes/
"""

import os
import sys
from pathlib import Path

MODEL = Path(__file__).resolve().parents[1] / "digits/classifier.xml"


def main(source: str, target: str) -> None:
    """Write a table with the class of every .png in a folder, or in a bucket such as s3://bucket/images."""
    # Ray takes seconds to import.
    import numpy as np
    import ray

    import irexec.ray

    # The cluster of RAY_ADDRESS or of this machine, or else one that is started here.
    ray.init()
    images = ray.data.read_binary_files(source, include_paths=True, file_extensions=["png"])
    scores = images.map_batches(
        irexec.ray.Predictor,
        fn_constructor_args=(str(MODEL),),
        fn_constructor_kwargs={"column": "bytes", "image": irexec.ImageOptions(scale=(255.0,))},
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=2),
        batch_size=8,
    )
    classes = scores.map_batches(
        lambda batch: {"path": batch["path"], "digit": np.argmax(batch["probabilities"], axis=1)}, batch_size=256
    )
    classes.write_parquet(target if "://" in target else os.path.abspath(target))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(
            "usage: python classify.py IMAGES TABLE, two folders or addresses such as s3://bucket/images",
            file=sys.stderr,
        )
        sys.exit(2)
    main(*sys.argv[1:])
