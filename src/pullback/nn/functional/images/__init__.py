"""Functions of images and signals: convolutions, poolings, paddings, resampling."""
