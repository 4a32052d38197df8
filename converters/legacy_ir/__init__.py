"""IR of versions 2 to 7, which Model Optimizer wrote from 2017 to 2020, to the IR of today."""
