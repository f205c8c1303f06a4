"""`attn-course site`: the course as a site to publish."""

from pathlib import Path
from typing import Annotated

from attn_course.commands.course import course_to_read, shown
from attn_course.commands.notebooks import Names
from attn_course.commands.terminal import BadInput, Failure, console, option
from attn_course.numbers import counted


def site(
    names: Names = None,
    out: Annotated[Path, option("--out", "DIR", "Folder for the site.")] = Path("site"),
    repository: Annotated[str, option("--repository", "OWNER/NAME", "Where the course lies on GitHub: adds Binder and Colab.")] = "",
    branch: Annotated[str, option("--branch", "NAME", "The branch that these open.")] = "main",
) -> None:
    """Write lessons and exercises as a site that any web server, or a folder on a stick, can serve.

    Beside them stand a page for each equation, most of which can be changed on it, and for each task, the key equations on two pages,
    a map of what rests on what, the glossary and the game. Formulas are set when the site is built, and nothing is loaded from
    elsewhere. Nothing is run: the pages show the outputs that are stored, and fold what answers a prediction. Addresses are made of
    names, so links stay right when lessons move.

    Exit code: 0 if it is written, 1 if a notebook has not been built or a page has a fault, 2 if there is no such lesson.

    Examples:

        attn-course site --out public
        attn-course site --repository owner/attn_course
        attn-course site softmax attention --out two
    """
    if repository and repository.count("/") != 1:
        raise BadInput(f"--repository: wanted OWNER/NAME as on GitHub; got {repository}")
    root = course_to_read()
    from attn_course.authoring import AuthoringError
    from attn_course.authoring.course import shown_units
    from attn_course.site import write_site

    try:
        shown_units(root, names or None)
    except AuthoringError as error:
        raise BadInput(str(error).removeprefix("only: ")) from None
    try:
        written = write_site(root, out, only=names or None, repository=repository, branch=branch)
    except AuthoringError as error:
        raise Failure(str(error)) from error
    console().print(f"{counted(written, 'page')} in {shown(out)}; open {shown(out / 'index.html')}", markup=False, soft_wrap=True)
