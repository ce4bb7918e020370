"""`python -m sl_discs.discs_main ...` is `sl-discs discs main ...`: DISCS's program with this
project's samplers.
"""

import sys

from sl_discs.commands.discs import main

if __name__ == "__main__":
    sys.exit(main(["discs main", *sys.argv[1:]]))
