"""`python -m sl_discs.main_sampling ...` is `sl-discs run ...`, under the name of DISCS's
program.
"""

import sys

from sl_discs.commands.run import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
