"""Tests of the repository: its layers, costs, documentation, examples, benchmarks and generated files."""
