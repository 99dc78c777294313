"""Tests of the bridges. Those of a host run where it is installed."""
