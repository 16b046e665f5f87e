"""`python -m horarium` is the same program as `horarium`."""

import sys

from horarium.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
