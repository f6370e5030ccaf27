"""Draw the failed cases that README and the tutorial show: ``python scripts/failure_pictures.py``.

Runs a bundled network on phantoms, and the tutorial's own function on its own pictures, opens each report in Chromium
and saves one case of its browser to docs/images. Run it again when the report looks different.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
TUTORIAL = ROOT / "docs" / "tutorial.md"
SIZE = {"width": 1000, "height": 900}
QUALITY = 80
MARGIN = 16


def write_blocks(page: Path, folder: Path) -> None:
    """Write every code block of a page whose first line names a file (``# mine/lesions.yaml``)."""
    for block in re.findall(r"```(?:python|yaml)\n(# [\w/.-]+\n.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        path = folder / block.partition("\n")[0].removeprefix("# ")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block, encoding="utf-8")


def run_suite(folder: Path, *arguments: str) -> Path:
    """Run a suite in a folder and return its report."""
    command = [sys.executable, "-m", "medtest", "run", *arguments, "track=false", "quiet=true"]
    subprocess.run(
        command, cwd=folder, env={**os.environ, "MEDTEST_HOME": str(folder)}, check=False
    )  # a gate that fails is what is to be seen
    (report,) = folder.glob("outputs/*/*/*/report.html")
    return report


def draw_case(browser: Browser, report: Path, address: str, out: Path) -> None:
    """Save one case of a report's browser, from its heading to its verdict."""
    page = browser.new_page(viewport=SIZE)
    page.goto(f"{report.as_uri()}#cases:verdict=violation&case={quote(address, safe='')}")
    section = page.locator("section#cases")
    section.locator(".stage").wait_for()
    clip = page.evaluate(
        """margin => {
            const whole = document.querySelector("section#cases").getBoundingClientRect();
            const below = [...document.querySelectorAll("section#cases dt")].find((term) => term.innerText === "scale");
            const height = below.getBoundingClientRect().top - whole.top - 4;
            return {x: whole.left - margin, y: whole.top + scrollY + 4, width: whole.width + 2 * margin, height};
        }""",
        MARGIN,
    )
    page.screenshot(path=out, type="jpeg", quality=QUALITY, full_page=True, clip=clip)
    page.close()


def main() -> None:
    """Draw both pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=IMAGES)
    out = parser.parse_args().out
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is not installed")
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        report = run_suite(Path(first), "suite=polyp_seg", "model=ssformer", "relations=[feces]", "limit=8")
        draw_case(browser, report, "phantoms/phantom-0007/feces_s5_f0_r0", out / "failure.jpg")
        write_blocks(TUTORIAL, Path(second))
        subprocess.run([sys.executable, "draw.py"], cwd=second, check=True)
        typed = ("suite=lesions", "suite_dir=mine", "data=data", "model=callable", "target=fixed.py:segment")
        report = run_suite(Path(second), *typed, "limit=12")
        draw_case(browser, report, "pictures/10/contrast_s3_f0_r0", out / "tutorial_failure.jpg")
        browser.close()


if __name__ == "__main__":
    main()
