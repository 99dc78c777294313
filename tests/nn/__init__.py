"""Tests of modules, layers, functions of networks, first values and parametrizations."""
