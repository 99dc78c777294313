"""Tests of the transforms of functions: `grad`, `vmap`, `jvp`, `forward_ad`, `autograd.functional`."""
