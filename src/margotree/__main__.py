"""``python -m margotree``, the command line without the installed script."""

import sys

from margotree.cli import main

sys.exit(main())
