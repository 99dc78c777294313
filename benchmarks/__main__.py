"""`python -m benchmarks`: the settings for all libraries before any is imported, and the command."""

import sys

from benchmarks import environment as environment
from benchmarks.command import main

if __name__ == "__main__":  # the processes of the sides import this module, too
    sys.exit(main(sys.argv[1:]))
