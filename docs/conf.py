"""Sphinx settings. `make docs` builds the manual offline."""

from importlib.metadata import version as installed_version

project = "holdtrue"
copyright = "2026, the holdtrue developers"
version = release = installed_version("holdtrue")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_toc_level": 2}
exclude_patterns = ["_build", "gallery/README.rst"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
suppress_warnings = ["config.cache", "myst.xref_missing", "ref.ref"]  # links within inherited docs
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "show_memory": False,
}
