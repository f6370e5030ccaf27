"""Writing of evidence: HTML always, PDF, bill of materials, list of files, signature."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtest.core.errors import MissingSystemLibrary, typed_error
from medtest.core.files import file_sha256, manifest_line
from medtest.core.files.written import check_out, note_out
from medtest.evidence.checking import INDEX
from medtest.evidence.document import document
from medtest.evidence.reading import RunEvidence
from medtest.evidence.signing import SIGNATURE, check_key, sign
from medtest.evidence.software import bill_of_materials, missing_extra, packages_of
from medtest.report.pages.page import render
from medtest.runner.folder import MANIFEST, output_problems, writing

STEM = "evidence"
"""Name of the files in a folder."""
BOM = ".cdx.json"
_TEMPLATE = Path(__file__).parent / "templates" / "evidence.html.j2"


@dataclass(frozen=True, kw_only=True)
class WrittenEvidence:
    """Written evidence.

    Attributes:
        files: Files in the order of their making: HTML, PDF, bill of materials, list of SHA-256, signature.
        deviations: Number of deviations in the document.
        held: True if every gate of every run passed, and there is one.
        notices: Omitted files, with the reason.
    """

    files: tuple[Path, ...]
    deviations: int
    held: bool
    notices: tuple[str, ...] = ()


def write_evidence(folders: Sequence[Path], out: Path, *, key: Path | None = None) -> WrittenEvidence:
    """Write the evidence of finished runs; nothing in their folders is changed.

    Args:
        folders: Folders of the runs.
        out: A folder for ``evidence.html``; or ``NAME.pdf``, beside which ``NAME.html`` is written.
        key: Private key that signs the list of files; None for no signature.

    Raises:
        UserMistakes: A file is in the way, or the key cannot sign.
        MissingSystemLibrary: PDF is wanted, and the extra ``evidence`` is not installed.
        OutputProblem: A run cannot be read, or a file cannot be written.
    """
    pdf = out.suffix.lower() == ".pdf"
    if not pdf and (out.is_file() or out.suffix.lower() in (".html", ".htm", ".zip", ".json")):
        raise typed_error("--out", str(out), "a folder, or FILE.pdf")
    folder, stem = (out.parent, out.stem) if pdf else (out, STEM)
    names = [f"{stem}.html", *([out.name] if pdf else []), f"{stem}{BOM}", f"{stem}{INDEX}"]
    names += [f"{stem}{INDEX}{SIGNATURE}"] if key is not None else []
    paths = [folder / name for name in names]
    stale = folder / f"{stem}{INDEX}{SIGNATURE}"
    check_out([*paths, stale], "--out")
    if key is not None:
        check_key(key)
    runs = [RunEvidence.read(path) for path in folders]
    packages, unequal = packages_of(runs)
    covered = [(os.path.relpath(run.material.folder, folder), _covered(run)) for run in runs]
    listed = [(f"{place}/{name}", sha) for place, names_of_run in covered for name, sha in names_of_run]
    page = document(runs, packages=packages, files=covered)
    page |= {"unequal": unequal, "bom": f"{stem}{BOM}", "index": f"{stem}{INDEX}", "sig": f"{stem}{INDEX}{SIGNATURE}"}
    contents, notices = {}, []
    try:
        contents[f"{stem}{BOM}"] = bill_of_materials(packages, name=page["title"])
    except MissingSystemLibrary as error:
        notices.append(str(error))
        page["bom"] = ""
    text = render(str(_TEMPLATE), page).encode(errors="backslashreplace").decode()  # names of files may be no UTF-8
    contents[f"{stem}.html"] = text.encode()
    if pdf:
        contents[out.name] = pdf_of(text)
    with output_problems(folder / names[0]):
        folder.mkdir(parents=True, exist_ok=True)
        stale.unlink(missing_ok=True)
    for name, content in contents.items():
        with writing(folder / name) as file:
            file.write(content)
    own = [(name, file_sha256(folder / name)) for name in sorted(contents)]
    with writing(folder / f"{stem}{INDEX}") as file:
        file.write("".join(manifest_line(sha, name) for name, sha in [*own, *listed]).encode(errors="surrogateescape"))
    note_out([path for path in paths if path.is_file()])  # so that the command may be repeated if signing fails
    if key is not None:
        sign(folder / f"{stem}{INDEX}", key)
    paths = [path for path in paths if path.is_file()]
    note_out(paths)
    deviations = sum(len(run["deviations"]) for run in page["runs"]) + len(unequal)
    return WrittenEvidence(files=tuple(paths), deviations=deviations, held=_held(page), notices=tuple(notices))


def _held(page: Mapping[str, Any]) -> bool:
    return all(run["gates"] and run["held"] for run in page["runs"])


def _covered(run: RunEvidence) -> list[tuple[str, str]]:
    """Return the files of a run that the list covers: its manifest, and its unchanged entries."""
    manifest = file_sha256(run.material.folder / MANIFEST)
    return [(MANIFEST, manifest), *((name, sha) for name, sha in run.files.items() if name not in run.changed)]


def pdf_of(text: str) -> bytes:
    """Return an HTML document as PDF on A4; nothing is fetched.

    Raises:
        MissingSystemLibrary: The extra ``evidence`` or one of its system libraries is not installed.
    """
    try:
        from weasyprint import HTML
        from weasyprint.urls import URLFetcher
    except (ImportError, OSError) as error:  # OSError: Pango is not installed
        raise missing_extra("PDF", error) from error
    fetcher = URLFetcher(allowed_protocols=["data"])
    content: bytes = HTML(string=text, url_fetcher=fetcher).write_pdf()
    return content
