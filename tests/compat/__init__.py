"""Tests of PyTorch's paths and switches."""
