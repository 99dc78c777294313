"""Tests of optimisers, learning-rate schedules and averaged models."""
