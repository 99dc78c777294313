"""Whole programs, of the kinds in tutorials and in scientists' daily work.

Data and initial values come from NumPy, the same in both libraries.
"""
