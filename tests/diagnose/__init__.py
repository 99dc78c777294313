"""Tests of the doctors: gradcheck, anomaly mode, origins."""
