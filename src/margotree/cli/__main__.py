"""``python -m margotree.cli`` for where the script is not on the path."""

import sys

from margotree.cli.main import main

sys.exit(main())
