"""``python -m margotree.cli``, the same as ``python -m margotree``."""

import sys

from margotree.cli import main

sys.exit(main())
