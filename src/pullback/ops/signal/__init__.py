"""Signals: Fourier transforms, spectra over time, windows."""
