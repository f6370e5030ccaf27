"""Hook of mkdocs.yml: pages that lie beside docs/, links that leave it, and the version in the heading."""

from __future__ import annotations

import re
from os.path import relpath
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from medtest import __version__

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = "https://github.com/medtest/medtest"
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
"""Pages of the repository that are pages of the site too, under names in small letters."""
BOOST = {"api/": 0.1, "contracts": 0.3, "changelog": 0.2, "index": 1.5, "glossary": 1.5}
"""Weights in the search, by the beginning of a page's name: who looks for a word seldom looks for a signature."""
CELL = re.compile(r"<t[dh].*?</t[dh]>", re.DOTALL)
ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):(?=<code>)")
"""Roles of docstrings, which only Sphinx knows."""
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show the version beside the name."""
    config.site_name = f"medtest {__version__}"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie beside docs/."""
    for name in BESIDE:
        files.append(File.generated(config, name.lower(), abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links of one page to pages of the site, and elsewhere to the repository; weigh the page in the search."""
    page.meta["search"] = {"boost": next((b for start, b in BOOST.items() if page.file.src_uri.startswith(start)), 1)}
    source = Path(str(page.file.abs_src_path)).resolve()
    pages = {Path(file.abs_src_path).resolve(): file.src_uri for file in files if file.abs_src_path}

    def target(link: re.Match[str]) -> str:
        path = (source.parent / link[1]).resolve()
        if path in pages:
            return str(PurePosixPath(relpath(pages[path], PurePosixPath(page.file.src_uri).parent)))
        if path.is_relative_to(ROOT) and path.exists():
            kind = "tree" if path.is_dir() else "blob"
            return f"{REPOSITORY}/{kind}/main/{path.relative_to(ROOT).as_posix()}"
        return link[1]  # MkDocs names what is not there

    return LINK.sub(target, markdown)


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Show bars in a table's code without a backslash, as GitHub does, and names in docstrings without a role."""
    return ROLE.sub("", CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html))
