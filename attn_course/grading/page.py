"""Pages that stand alone: one file, no scripts, nothing loaded from anywhere, light and dark, and fit for paper."""

import html
import re

# Even if escaping failed somewhere, this policy keeps a page from running or loading anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --paper: #ffffff; --soft: #59636e; --line: #d1d9e0; --card: #f6f8fa;
  --good: #00664a; --bad: #a33f00; --open: #6b5900; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --soft: #9aa4af; --line: #3d444d;
  --card: #161b22; --good: #4fd1a5; --bad: #ff9a5c; --open: #e8d44d; } }
* { box-sizing: border-box; }
body { color: var(--ink); background: var(--paper); font: 1rem/1.5 system-ui, sans-serif; max-width: 50rem; margin: 0 auto;
  padding: 1.5rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0; }
p { margin: .4rem 0; }
.soft { color: var(--soft); }
.total { font-size: 1.15rem; font-weight: 600; }
section.task { border: 1px solid var(--line); border-left: .35rem solid var(--line); border-radius: .4rem; background: var(--card);
  padding: .7rem 1rem; margin: .7rem 0; break-inside: avoid; }
section.passed { border-left-color: var(--good); }
section.failed { border-left-color: var(--bad); }
section.other { border-left-color: var(--open); }
.head { display: flex; gap: 1rem; justify-content: space-between; }
.head > :last-child { white-space: nowrap; }
.passed .word { color: var(--good); font-weight: 600; }
.failed .word { color: var(--bad); font-weight: 600; }
.other .word { color: var(--open); font-weight: 600; }
.said { white-space: pre-wrap; }
code { font-family: ui-monospace, monospace; font-size: .92em; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); }
th, td { overflow-wrap: break-word; max-width: 16rem; }
td:last-child { overflow-wrap: anywhere; max-width: none; min-width: 14rem; }
.wide { overflow-x: auto; }
figure { margin: .8rem 0; break-inside: avoid; }
figure img { max-width: 100%; height: auto; background: #ffffff; border-radius: .4rem; padding: .3rem; }
summary { cursor: pointer; }
@media print { body { max-width: none; padding: 0; font-size: 10.5pt; } section.task { background: none; } }
"""


def page(title: str, body: str) -> str:
    """Return a whole HTML page.

    Parameters
    ----------
    title : str
        Plain text.
    body : str
        HTML whose texts are escaped.

    Returns
    -------
    page : str
        Self-contained, without scripts.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="robots" content="noindex">\n'
        f"<title>{plain(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def plain(text: str) -> str:
    """Return text as HTML that shows it and does nothing else.

    Examples
    --------
    >>> plain('<img src="x">')
    '&lt;img src=&quot;x&quot;&gt;'
    """
    return html.escape(text, quote=True)


def counted(number: int, noun: str) -> str:
    """Return a number with a noun, of which there may be one or more.

    Examples
    --------
    >>> counted(1, "notebook"), counted(0, "notebook")
    ('1 notebook', '0 notebooks')
    """
    return f"{number} {noun}" + ("" if number == 1 else "s")


def prose(text: str) -> str:
    """Return our own text, in which `code` stands between backticks, as HTML.

    Examples
    --------
    >>> prose("use `x < 1`")
    'use <code>x &lt; 1</code>'
    """
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", plain(text))
