"""How the pages are made: ``python -m sphinx -W -b html docs docs/_build``."""

import os
import re
import sys
from importlib.metadata import version as installed
from pathlib import Path

from docutils import nodes

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import front  # noqa: E402  (which lie beside this file)
import notebooks  # noqa: E402
import slides  # noqa: E402

os.environ.setdefault("MATPLOTLIBRC", str(HERE / "matplotlibrc"))  # of executed pages
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # pictures stand in pages
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

project = "cvxprivacy"
author = "The cvxprivacy developers"
copyright = "The cvxprivacy developers"  # noqa: A001  (Sphinx reads this name)
version = release = installed("cvxprivacy")

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "jupyter_execute", "README.md"]
templates_path = ["_templates"]
suppress_warnings = ["mystnb.unknown_mime_type"]

# ---- executed pages ----------------------------------------------------------------------
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / ".jupyter_cache")
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True
myst_enable_extensions = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist",
                          "dollarmath"]  # fmt: skip
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def offers_a_notebook(app, page, source):
    """End each executed page with itself as a notebook."""
    source[0] += notebooks.note(page, HERE)


def makes_slides(app, error):
    """Make the slides of the lecture from the pages, if these were built."""
    if error is None and app.builder.format == "html":
        slides.write(Path(app.outdir))


def tags_are_not_split(app, doctree):
    r"""Leave numbered equations as they are: Sphinx would put \\ into split, which has no \tag."""
    for block in doctree.findall(nodes.math_block):
        if r"\tag" in block.astext():
            block["no-wrap"] = block["nowrap"] = True
            block.children = [nodes.Text(rf"\[{block.astext()}\]")]


# ---- reference ---------------------------------------------------------------------------
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say the types
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
add_module_names = False

_LITERAL = re.compile(r"(``.*?``|`[^`]*`)")


def bars_are_letters(app, what, name, thing, options, lines):
    """|W| in a docstring is the size of an alphabet, not a substitution."""
    indented, example = "", False  # what follows ``::`` or a directive, as long as it is indented
    for i, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if indented and line.strip() and not line.startswith(indented):
            indented = ""
        if indented or example:
            continue
        if line.rstrip().endswith("::") or line.lstrip().startswith(".. "):
            indented = (len(line) - len(line.lstrip()) + 1) * " "
        else:
            parts = _LITERAL.split(line)
            parts[::2] = [part.replace("|", "\\|") for part in parts[::2]]
            lines[i] = "".join(parts)


# ---- look --------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "cvxprivacy"
html_static_path = ["_static"]
html_css_files = ["house.css"]
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "light"}
html_sidebars = {"index": [], "explorer": [], "changelog": []}
html_theme_options = {
    "navbar_end": [],
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "secondary_sidebar_items": {  # reference/generated, the gallery and others have none
        "tutorials/*": ["page-toc"],
        "howto/*": ["page-toc"],
        "teaching/*": ["page-toc"],
        "theory/*": ["page-toc"],
        "reference/[!g]*": ["page-toc"],
    },
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
}


def setup(app):
    """Write what is computed before the pages are read."""
    import gallery
    from explorer import data

    front.write(HERE / "index.md", HERE / "_static" / "front.svg")
    app.connect("builder-inited", lambda app: notebooks.write(HERE, HERE / "_static" / "notebooks"))
    app.connect("builder-inited", lambda app: gallery.write(HERE.parent, HERE / "gallery"))
    app.connect("builder-inited", lambda app: data.write(HERE / "_static" / "explorer"))
    app.connect("build-finished", makes_slides)
    app.connect("source-read", offers_a_notebook)
    app.connect("doctree-read", tags_are_not_split)
    app.connect("autodoc-process-docstring", bars_are_letters)
    return {"parallel_read_safe": True}
