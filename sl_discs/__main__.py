"""`python -m sl_discs COMMAND ...` is `sl-discs COMMAND ...`."""

import sys

from sl_discs.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
