"""One tree as one page: a file of its own that opens in any browser, offline."""

from margotree.page.html import render_page, write_page

__all__ = ["render_page", "write_page"]
