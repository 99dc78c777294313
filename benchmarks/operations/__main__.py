"""`python -m benchmarks.operations`: what both libraries are told before they are imported, and the command."""

import sys

from benchmarks import environment as environment
from benchmarks.operations.command import main

sys.exit(main(sys.argv[1:]))
