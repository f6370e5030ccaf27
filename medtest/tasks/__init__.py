"""Kinds of answers, one package each; engines import only :mod:`medtest.core.tasks.base` and use the task object."""

TASKS: dict[str, str] = {
    "answer": "medtest.tasks.ask.task:AskTask",
    "depiction": "medtest.tasks.depict.task:DepictTask",
    "image": "medtest.tasks.restore.task:RestoreTask",
    "label": "medtest.tasks.classify.task:ClassifyTask",
    "mask": "medtest.tasks.segment.task:SegmentTask",
    "region": "medtest.tasks.region.task:RegionTask",
}
"""Kinds of answers by the name that seeds, systems and oracles use; summaries are in ``conf/tasks/<name>.yaml``."""

ORACLES: dict[str, str] = {
    "answers": "medtest.tasks.ask.oracle:Answers",
    "labels": "medtest.tasks.classify.oracle:Labels",
    "lesion_free": "medtest.tasks.segment.lesion_free:LesionFree",
    "masks": "medtest.tasks.segment.oracle:Masks",
    "quality": "medtest.tasks.restore.oracle:Quality",
    "regions": "medtest.tasks.region.oracle:Regions",
    "scenes": "medtest.tasks.depict.oracle:Scenes",
}
"""Oracles by the name that suites and digests use; defaults are in ``conf/oracles/<name>.yaml``."""
