"""Readers turn systems' answers into the facts that oracles check and tables count."""

READERS: dict[str, str] = {
    "ask": "medtest.readers.pictures.ask:PictureAsker",
    "bundled": "medtest.readers.pictures.bundled.reader:Bundled",
    "detector": "medtest.readers.pictures.detectors.detector:Detector",
    "detr": "medtest.readers.pictures.detectors.huggingface:ClassDetector",
    "judge": "medtest.readers.judge:Judge",
    "labels": "medtest.readers.pictures.findings.labels:LabelReader",
    "masks": "medtest.readers.pictures.findings.masks:MaskReader",
    "orders": "medtest.readers.pictures.findings.orders:OrderReader",
    "scene_graph": "medtest.readers.pictures.scene_graph:SceneGraph",
    "segments": "medtest.readers.pictures.segments:Segments",
    "typed_answers": "medtest.readers.typed:TypedAnswers",
    "word_detector": "medtest.readers.pictures.detectors.word_detectors:WordDetector",
}
"""Readers by the name that suites and digests use; defaults are in ``conf/readers/<name>.yaml``."""
