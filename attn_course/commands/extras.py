"""What authors and teachers install beside the course, and what to say where it is missing."""

EXTRAS = {"jupytext": "author", "nbclient": "author", "distributed": "class", "jinja2": "class"}  # package -> extra
EXTRAS |= {"docutils": "site", "sphinx": "site", "sphinx_revealjs": "site", "genanki": "cards"}  # the first of them that is asked for


def missing_extra(error: Exception) -> str | None:
    """Return a line on how to install a package that an extra brings, if the error is that it is missing."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    extra = EXTRAS.get(package)
    return extra and f"this needs {package}: pip install 'attn_course[{extra}]'"
