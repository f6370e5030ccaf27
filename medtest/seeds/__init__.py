"""Seed sources: one class per file, its defaults in ``conf/seeds/<name>.yaml``."""

SEEDS: dict[str, str] = {
    "abdomens": "medtest.seeds.made.abdomens:Abdomens",
    "caption_phantoms": "medtest.seeds.made.caption_phantoms:CaptionPhantoms",
    "captions": "medtest.seeds.captions.source:Captions",
    "films": "medtest.seeds.made.films:Films",
    "geneval": "medtest.seeds.captions.geneval:GenEval",
    "image_mask_folders": "medtest.seeds.folders.image_masks:ImageMaskFolders",
    "label_folder": "medtest.seeds.labels.folder:LabelFolder",
    "label_phantoms": "medtest.seeds.made.label_phantoms:LabelPhantoms",
    "liver_volumes": "medtest.seeds.volumes.liver_volumes:LiverVolumes",
    "order_phantoms": "medtest.seeds.made.order_phantoms:OrderPhantoms",
    "orders": "medtest.seeds.captions.orders:Orders",
    "phantoms": "medtest.seeds.made.phantoms:Phantoms",
    "question_phantoms": "medtest.seeds.made.question_phantoms:QuestionPhantoms",
    "questions": "medtest.seeds.questions.folder:QuestionFolder",
    "series_images": "medtest.seeds.volumes.series_images:SeriesImages",
}
"""Seed sources by the name that suites and digests use; defaults are in ``conf/seeds/<name>.yaml``."""
