"""Perturbations of other libraries as relations; the table names the adapter of each library."""

LIBRARIES: dict[str, str] = {
    "albumentations": "medtest.relations.perturb.albumentations:AlbumentationsLibrary",
    "monai": "medtest.relations.perturb.monai:MonaiLibrary",
    "nrtk": "medtest.relations.perturb.nrtk:NrtkLibrary",
    "torchio": "medtest.relations.perturb.torchio:TorchIOLibrary",
    "torchvision": "medtest.relations.perturb.torchvision:TorchvisionLibrary",
}
"""Adapters by the first part of ``transform``; other packages add theirs in the entry point group ``GROUP``."""
GROUP = "medtest.perturbations"
"""Entry point group of adapters of other packages: ``mylibrary = "package.module:Class"``."""
