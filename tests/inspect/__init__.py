"""Tests of what explains a graph: pictures, memory, timelines, missing gradients."""
