"""Software of runs, as a CycloneDX bill of materials."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from medtest.core.errors import MissingSystemLibrary
from medtest.evidence.reading import RunEvidence
from medtest.runner.reporting.software import ENVIRONMENT, lock_of


def packages_of(runs: Sequence[RunEvidence]) -> tuple[dict[str, str], list[str]]:
    """Return the versions of software, and the statements of runs that they contradict.

    They are those of the newest frozen plan, or of this machine if no run follows a plan. What a run itself states
    takes precedence.
    """
    plans = [run.plan for run in runs if run.plan is not None]
    newest = max(plans, key=lambda plan: str(plan["frozen_at"]), default=None)
    versions = {str(name): str(text) for name, text in (lock_of() if newest is None else newest["packages"]).items()}
    stated: dict[str, str] = {}
    unequal = []
    for run in runs:
        for name, text in (run.material.run.get("versions") or {}).items():
            if stated.setdefault(name, str(text)) != str(text):
                unequal.append(f"{run.name}: {name} {text}; listed is {stated[name]}")
            elif versions.get(name, str(text)) != str(text) and name not in ("system", "machine"):
                where = "on this machine" if newest is None else "in the frozen plan"
                unequal.append(f"{run.name}: {name} {text}; {where} {versions[name]}")
    return {**versions, **stated}, unequal


def bill_of_materials(packages: Mapping[str, str], *, name: str) -> bytes:
    """Return the bill of materials as CycloneDX JSON.

    Args:
        packages: Versions by name.
        name: Name of what was tested.

    Raises:
        MissingSystemLibrary: The extra ``evidence`` is not installed.
    """
    try:
        from cyclonedx.model.bom import Bom
        from cyclonedx.model.component import Component, ComponentType
        from cyclonedx.output import make_outputter
        from cyclonedx.schema import OutputFormat, SchemaVersion
        from packageurl import PackageURL
    except ImportError as error:
        raise missing_extra("the bill of materials", error) from error
    bom = Bom()
    tested = Component(name=name, type=ComponentType.APPLICATION, bom_ref="tested")
    bom.metadata.component = tested
    for package, version in packages.items():
        if package in ("machine", "system"):
            continue
        library = package not in ENVIRONMENT or package == "medtest"
        bom.components.add(
            Component(
                name=package,
                version=version,
                type=ComponentType.LIBRARY if library else ComponentType.PLATFORM,
                purl=PackageURL("pypi", name=package, version=version) if library else None,
                bom_ref=f"{package}=={version}",
            )
        )
    bom.register_dependency(tested, bom.components)
    text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1)
    content: dict[str, Any] = json.loads(text)
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def missing_extra(product: str, error: Exception) -> MissingSystemLibrary:
    """Return the error for a missing library of the extra."""
    return MissingSystemLibrary(f"{product} needs the extra evidence ({error}): pip install 'medtest[evidence]'")
