"""Layers for images and signals: convolutions, poolings, paddings, resampling."""
