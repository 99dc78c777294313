"""From a program to loops and calls, and to one function of arrays."""
