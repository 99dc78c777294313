"""The backends that run a loop: as compiled C, or as NumPy in blocks."""
