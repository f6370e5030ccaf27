"""Tags and aliases in MLflow's model registry that say whether the suite's gates hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from medtest.core.errors import NotTracked
from medtest.report.mlflow.headline import headline_of
from medtest.report.pages.material import Material, read_run
from medtest.report.tracking import Tracker
from medtest.report.tracking.runs_page import GATE, HEADLINE
from medtest.results.gating.conditions import PASSED
from medtest.suite.model import Invocation


def update_registry(invocation: Invocation, materials: Iterable[Material]) -> Iterator[str]:
    """Tag each tested version, and move the alias to it where every gate holds; yield one line per version.

    Args:
        invocation: Options for tags and alias.
        materials: Material of each system, once its run is in the store.

    Raises:
        NotTracked: The registry failed, or denies access; the runs are in the store.
    """
    tested = {
        str(registered): material
        for material in materials
        if (registered := (material.run.get("model") or {}).get("registry"))
    }
    if not tested or not (invocation.tag_model or invocation.alias):
        return
    tracker = Tracker(invocation.home, invocation.tracking_uri)
    for registered, material in tested.items():
        try:
            yield _update_version(tracker, invocation, registered, material)
        except NotTracked as error:
            raise NotTracked(f"The registry entry of {registered} was not updated. {error}") from error


def _update_version(tracker: Tracker, invocation: Invocation, registered: str, material: Material) -> str:
    name, _, version = registered.rpartition("/")
    head = headline_of(material, material.system)
    gate = head.tags[GATE]
    if gate == "none":
        return f"Registry:  {registered} stays unchanged: the suite has no gate."
    key = f"medtest.{material.wanted.suite}"
    done = []
    if invocation.tag_model:
        version_tags = {key: gate, f"{key}.version": material.wanted.version}
        version_tags |= {
            f"{key}.{metric}": f"{value:.4g}" for metric, value in head.metrics.items() if metric in HEADLINE
        }
        version_tags[f"{key}.run"] = str(read_run(material.target).get("mlflow_run_id", ""))
        version_tags |= {f"{key}.partial": material.partial_cases} if material.partial_cases else {}
        tracker.tag_model(name, version, version_tags)
        done.append(f"tag {key}={gate}")
    if invocation.alias and (why := _alias_obstacle(material, gate)):
        done.append(f"alias {invocation.alias} is not moved: {why}")
    elif invocation.alias:
        tracker.point_alias(name, invocation.alias, version)
        done.append(f"alias {invocation.alias} points to this version")
    return f"Registry:  {registered}: {', '.join(done)}."


def _alias_obstacle(material: Material, gate: str) -> str:
    """Return the reason why an alias may not point to the tested version; "" if it may."""
    if gate != PASSED:
        return "a gate failed"
    if material.too_many_errors:
        return "too many cases are errors"
    return f"the run covers {material.partial_cases}" if material.partial_cases else ""
