"""Writing of ``summary.md``, ``result.json`` and, on request, ``junit.xml`` beside a system's report."""

from __future__ import annotations

import json
from pathlib import Path

from medtest.report.ci import JUNIT, RESULT, SUMMARY
from medtest.report.ci.junit import write_junit
from medtest.report.ci.result_file import result_of
from medtest.report.ci.summary import summary_text
from medtest.report.pages.material import Material
from medtest.runner.folder import writing, writing_text


def write_for_ci(material: Material, junit: str | None = None) -> list[Path]:
    """Write the files of one system for continuous integration.

    Args:
        material: The system's tables, as its report shows them.
        junit: ``cells`` or ``cases``, the unit of a test case in ``junit.xml``; None or "" writes no such file.

    Returns:
        The files.

    Raises:
        OutputProblem: A file cannot be written, or the records cannot be read.
    """
    texts = {
        SUMMARY: summary_text(material),
        RESULT: json.dumps(result_of(material), indent=2, ensure_ascii=False, allow_nan=False) + "\n",
    }
    for name, text in texts.items():
        with writing_text(material.target / name) as file:
            file.write(text)
    written = [material.target / name for name in texts]
    if junit:
        with writing(material.target / JUNIT) as file:
            write_junit(material, file, cases=junit == "cases")
        written.append(material.target / JUNIT)
    return written
