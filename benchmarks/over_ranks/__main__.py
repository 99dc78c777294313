"""`python -m benchmarks.over_ranks`: the settings for all libraries before any is imported, and the command."""

import sys

from benchmarks import environment as environment
from benchmarks.over_ranks.command import main

sys.exit(main(sys.argv[1:]))
