"""`python -m pullback`: the same as the command `pullback`."""

import sys

from pullback.cli.main import main

sys.exit(main())
