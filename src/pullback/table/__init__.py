"""The table of operations: entering one and calling it. No operation is defined here."""
