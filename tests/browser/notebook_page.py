"""A JupyterLab page as a test sees it: what is asked of it by mouse and keyboard, and what its notebook holds then."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import ConsoleMessage, Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CALM = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
UNMOVED = "--disable-threaded-compositing"  # where nobody scrolls or clicks: what keeps a moving page smooth was a third of the time
CURRENT = "window.jupyterapp?.shell?.currentWidget"  # undefined until JupyterLab is up
# A cell that waits or runs shows a star; no star left and a kernel that is idle: nothing is under way.
IDLE = f"""() => {{
    const panel = {CURRENT};
    const busy = panel.content.widgets.some((cell) => cell.model.type === 'code' && cell.prompt === '*');
    return !busy && panel.sessionContext.session?.kernel?.status === 'idle';
}}"""
# After a run of all cells each has a number again, but for those behind an error.
HAS_RUN = f"""() => {{
    const cells = {CURRENT}.content.model.toJSON().cells.filter((cell) => cell.cell_type === 'code');
    const failed = cells.some((cell) => cell.outputs.some((output) => output.output_type === 'error'));
    return failed || cells.every((cell) => cell.execution_count !== null);
}}"""
HAS_RUN_AGAIN = f"""([id, before]) => {{
    const model = {CURRENT}.content.widgets.find((cell) => cell.model.id === id).model;
    return model.executionCount !== null && model.executionCount !== before;
}}"""


def browser_path() -> str | None:
    """Return the chromium or google-chrome on PATH, None if there is none."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def required_browser() -> str:
    """Return the browser on PATH; without one the test is skipped, and on CI it fails, since there it must not be passed over."""
    found = browser_path()
    if found is None and os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail("CI must have chromium or google-chrome on PATH")
    if found is None:
        pytest.skip("no chromium or google-chrome on PATH")
    return found


class NotebookPage:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._note(request.url))

    def _hear(self, message: ConsoleMessage) -> None:
        # Asked for its kernels at the very moment one starts, jupyter_server 2 stumbles over a date that is not set yet; it is asked again.
        starting = "status of 500" in message.text and "/api/kernels?" in message.location["url"]
        if message.type == "error" and not starting:
            self.complaints.append(f"{message.text} {message.location}")

    def _note(self, url: str) -> None:
        if not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
            self.elsewhere.append(url)

    def _wait_for(self, condition: str, arg: Any = None) -> None:
        # Unless told how often, it asks at every frame, and has each drawn: that took more of the time than JupyterLab itself.
        self.page.wait_for_function(condition, arg=arg, polling=200)

    def open(self, address: str) -> None:
        self.page.goto(address)
        self.wait_until_ready()

    def reload(self, path: str) -> None:
        """Load the page again, as F5 does, and wait for the notebook that was in front."""
        self.page.reload()
        self.wait_until_ready(path)

    def wait_until_ready(self, path: str = "") -> None:
        """Wait until a notebook (the one at `path`, if given) is in front and its kernel is idle."""
        self._wait_for(
            f"(path) => {CURRENT}?.context?.isReady && {CURRENT}.content.widgets.length > 0 && {CURRENT}.context.path.endsWith(path)",
            arg=path,
        )
        self._wait_for(IDLE)

    def path(self) -> str:
        return str(self.page.evaluate(f"() => {CURRENT}.context.path"))

    def cells(self) -> list[dict[str, Any]]:
        return list(self.page.evaluate(f"() => {CURRENT}.content.model.toJSON().cells"))

    def cell(self, cell_id: str) -> dict[str, Any]:
        (found,) = (cell for cell in self.cells() if cell["id"] == cell_id)
        return found

    def menu(self, *labels: str) -> None:
        bar, *items = labels
        self.page.locator(".lm-MenuBar-itemLabel", has_text=bar).first.click()
        for label in items:
            self.page.locator(".lm-Menu-itemLabel").get_by_text(label, exact=True).click()

    def run_all(self) -> None:
        """Clear what the notebook holds, then run every cell from the menu, and wait for the end."""
        self.menu("Edit", "Clear Outputs of All Cells")
        self.menu("Run", "Run All Cells")
        self._wait_for(HAS_RUN)
        self._wait_for(IDLE)

    def run_cell(self, cell_id: str, *, text: str | None = None) -> dict[str, Any]:
        """Click into a cell, type a new text over the old one if one is given, press Shift+Enter; return the cell that ran."""
        self.page.evaluate(
            f"(id) => {CURRENT}.content.scrollToCell({CURRENT}.content.widgets.find((cell) => cell.model.id === id))", cell_id
        )
        node = self.page.evaluate_handle(
            f"(id) => {CURRENT}.content.widgets.find((cell) => cell.model.id === id).node", cell_id
        ).as_element()
        assert node is not None, f"no cell {cell_id}"
        before = self.cell(cell_id)["execution_count"]
        editor = node.wait_for_selector(".cm-content")
        editor.click()
        if text is not None:
            self.page.keyboard.press("ControlOrMeta+a")
            self.page.keyboard.insert_text(text)
        self.page.keyboard.press("Shift+Enter")
        self._wait_for(HAS_RUN_AGAIN, arg=[cell_id, before])
        self._wait_for(IDLE)
        return self.cell(cell_id)

    def save(self) -> None:
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("ControlOrMeta+s")
        self._wait_for(f"() => !{CURRENT}.context.model.dirty")

    def unsaved(self) -> bool:
        return bool(self.page.evaluate(f"() => {CURRENT}.context.model.dirty"))

    def folded(self, cell: str) -> bool:
        """Whether the output of a cell is out of sight."""
        return bool(self.page.evaluate(f"id => {CURRENT}.content.widgets.find((cell) => cell.model.id === id).outputHidden", cell))

    def hidden(self, cell: str) -> bool:
        """Whether a cell is out of sight, because its section is folded."""
        return bool(self.page.evaluate(f"id => {CURRENT}.content.widgets.find((cell) => cell.model.id === id).isHidden", cell))

    def in_sight(self, cell: str, selector: str) -> bool:
        """Whether what a selector finds in a cell is to be seen; wait until it is there at all."""
        found = f"([id, selector]) => {CURRENT}.content.widgets.find((cell) => cell.model.id === id).node.querySelector(selector)"
        self._wait_for(found, arg=[cell, selector])
        return bool(self.page.evaluate(f"(asked) => ({found})(asked).checkVisibility()", [cell, selector]))

    def interruptions(self) -> list[str]:
        """Return the text of every dialog and pop-up in sight."""
        return [text for kind in (".jp-Dialog", ".Toastify__toast") for text in self.page.locator(kind).all_inner_texts()]


@contextmanager
def open_page(executable: str, profile: Path, *flags: str) -> Iterator[NotebookPage]:
    """Start a browser with a new profile and give its page."""
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # chromium will not be root in a sandbox
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=executable, args=[*CALM, *root, *flags], headless=True, viewport={"width": 1400, "height": 900}
        )
        context.set_default_timeout(120_000)  # a busy machine is slow, not wrong
        try:
            yield NotebookPage(context.pages[0])
        finally:
            context.close()


def errors(cells: list[dict[str, Any]]) -> list[str]:
    """Return the errors among the outputs, each with the id of its cell."""
    return [
        f"{cell['id']}: {output['ename']}: {output['evalue']}"
        for cell in cells
        for output in cell.get("outputs", [])
        if output["output_type"] == "error"
    ]


def displayed(cell: dict[str, Any]) -> str:
    """Return the plain text of what a cell displayed."""
    return "\n".join("".join(output["data"].get("text/plain", "")) for output in cell["outputs"] if output["output_type"] == "display_data")
