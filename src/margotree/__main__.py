"""``python -m margotree`` for where the script is not on the path."""

import sys

from margotree.cli import main

sys.exit(main())
