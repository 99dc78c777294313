"""`python -m benchmarks`: the settings for all libraries before any is imported, and the command."""

import sys

from benchmarks import environment as environment
from benchmarks.command import main

sys.exit(main(sys.argv[1:]))
