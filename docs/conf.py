"""The documentation: ``make docs`` builds it into docs/_build/html, warnings being errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import margotree

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "margotree"
author = "The margotree developers"
copyright = "the margotree developers, BSD 3-Clause"
release = version = margotree.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "**/GALLERY_HEADER.rst", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.json"]
html_theme = "furo"
html_title = "margotree"
html_static_path = ["_static"]
html_css_files = ["margotree.css"]
html_show_sphinx = False

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"show-inheritance": False}
napoleon_numpy_docstring = True
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
    "image_srcset": ["2x"],
    "matplotlib_animations": False,
    "notebook_images": False,
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
}


def write_command_line(app: Any) -> None:
    """The help of every command, straight from the parser."""
    from command_line import page

    target = HERE / "_generated" / "commands.md"
    target.parent.mkdir(exist_ok=True)
    text = page()
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("builder-inited", write_command_line)
