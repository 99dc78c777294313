"""Tests of checkpointing, data sets and loaders."""
