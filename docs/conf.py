"""Sphinx settings. `make docs` builds the site offline and checks it."""

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx_gallery.sorting import ExplicitOrder

from holdtrue import __version__

project = "holdtrue"
copyright = "2026, the holdtrue developers"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "gallery/**/README.rst"]
html_theme = "pydata_sphinx_theme"
html_title = "holdtrue"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_math_renderer = "mathml"
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
        "text": "holdtrue",
    },
    "header_links_before_dropdown": 5,
    "header_dropdown_text": "More",
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "get_started": [], "how": [], "trust": [], "scale": []}

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
numpydoc_show_class_members = False  # _templates/autosummary/class.rst has them
default_role = "py:obj"  # `names` of docstrings are links
autodoc_typehints = "none"  # numpydoc has the types
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
suppress_warnings = [
    "config.cache",
    "myst.xref_missing",  # results link to files of the repository
    "ref.ref",  # links within docstrings inherited from scikit-learn
    "ref.term",
    "toc.not_included",
    "toc.not_readable",  # a page of the navigation may come later
]
sphinx_gallery_conf = {
    "capture_repr": (),  # what is printed is shown, not the legend that a last line returns
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "image_scrapers": ("matplotlib",),
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "subsection_order": ExplicitOrder(
        [f"../examples/{family}" for family in ("categories", "domains", "sources", "model_size")]
    ),
    "thumbnail_size": (480, 280),
    "write_computation_times": False,
}


def mathml(translator, node):
    """A formula as MathML, which browsers draw without a script from elsewhere."""
    block = node.tagname == "math_block"
    translator.body.append(tex2mathml(node.astext(), as_block=block))
    raise SkipNode


def public_name(app, env, node, content):
    """A link for a bare name of the package, wherever it stands; None if there is none."""
    name = f"holdtrue.{node['reftarget']}"
    return env.domains["py"].resolve_xref(
        env, node["refdoc"], app.builder, "obj", name, node, content
    )


def setup(app):
    app.connect("missing-reference", public_name)
    app.add_html_math_renderer("mathml", (mathml, None), (mathml, None))
