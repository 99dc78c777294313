"""`python -m pullback`: the same as the command `pullback`."""

import sys

from pullback.cli import main

sys.exit(main())
