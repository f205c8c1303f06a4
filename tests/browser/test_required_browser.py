"""Without a browser the browser test is skipped at home and fails on CI."""

import pytest

from tests.browser import notebook_page
from tests.browser.notebook_page import required_browser


@pytest.fixture
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_page.shutil, "which", lambda name: None)


@pytest.mark.usefixtures("no_browser")
def test_without_a_browser_it_is_skipped_at_home(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no chromium or google-chrome on PATH"):
        required_browser()


@pytest.mark.usefixtures("no_browser")
@pytest.mark.parametrize("value", ["true", "1"])
def test_without_a_browser_it_fails_on_ci(value: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CI", value)
    with pytest.raises(pytest.fail.Exception, match="CI must have"):
        required_browser()


def test_any_of_the_usual_names_will_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(notebook_page.shutil, "which", lambda name: f"/opt/{name}" if name == "google-chrome" else None)
    assert required_browser() == "/opt/google-chrome"
