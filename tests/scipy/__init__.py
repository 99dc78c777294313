"""Tests of operations where the samples of their entries do not reach."""
