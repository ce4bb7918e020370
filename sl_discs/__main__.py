"""`python -m sl_discs COMMAND ...` is `sl-discs COMMAND ...`."""

import sys

from sl_discs.commands.main import main

sys.exit(main())
