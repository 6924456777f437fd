"""Report pages: an HTML file about one tree that works offline.

- ``html``: :func:`write_page`, which combines data, styles and scripts. Start here.
- ``page_data``: the content of the page as JSON values
- ``columns``: the input fields for a new sample
- ``files``: the HTML template, the style sheet and the scripts
"""

from margotree.page.html import render_page, write_page

__all__ = ["render_page", "write_page"]
