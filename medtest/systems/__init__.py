"""Systems under test: each with its preset in ``conf/model/<name>.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SYSTEMS", "build_network"]

SYSTEMS: dict[str, str] = {
    "agdn": "medtest.systems.classification.families:AGDNSystem",
    "attnmel": "medtest.systems.classification.families:AttnMelSystem",
    "bilateral": "medtest.systems.restoration.libraries:Bilateral",
    "bm3d": "medtest.systems.restoration.libraries:BlockMatching",
    "callable": "medtest.systems.adapters.callable:CallableSystem",
    "capsule_findings": "medtest.systems.classification.heads:CapsuleFindingsSystem",
    "chat_images": "medtest.systems.pictures.services:ChatImages",
    "chexnet": "medtest.systems.classification.families:CheXNetSystem",
    "chexnet_sides": "medtest.systems.classification.heads:CheXNetSidesSystem",
    "coherence_diffusion": "medtest.systems.restoration.coherence_diffusion:CoherenceDiffusion",
    "coherence_shock": "medtest.systems.restoration.shock:CoherenceShock",
    "command": "medtest.systems.adapters.command:Command",
    "complex_shock": "medtest.systems.restoration.shock:ComplexShock",
    "constant": "medtest.systems.controls:Constant",
    "dashscope_images": "medtest.systems.pictures.services:DashScope",
    "deepai": "medtest.systems.pictures.services:DeepAI",
    "diffusers": "medtest.systems.pictures.diffusers:Diffusers",
    "dsinet": "medtest.systems.classification.families:DSINetSystem",
    "enhanced_shock": "medtest.systems.restoration.shock:EnhancedShock",
    "finished_pictures": "medtest.systems.pictures.finished:FinishedPictures",
    "huggingface": "medtest.systems.adapters.libraries.huggingface:HuggingFace",
    "huggingface_images": "medtest.systems.pictures.services:HuggingFaceImages",
    "identity": "medtest.systems.controls:Identity",
    "inceptionv3_dr": "medtest.systems.classification.families:InceptionDRSystem",
    "knn": "medtest.systems.segmentation.background:Knn",
    "median": "medtest.systems.restoration.libraries:Median",
    "mlflow": "medtest.systems.adapters.mlflow_model:Registered",
    "mog2": "medtest.systems.segmentation.background:Mog2",
    "monai": "medtest.systems.adapters.bundles.monai_bundle:MonaiBundle",
    "non_local_means": "medtest.systems.restoration.libraries:NonLocalMeans",
    "onnx": "medtest.systems.adapters.onnx:Onnx",
    "openai_compatible": "medtest.systems.answering.openai_compatible:OpenAICompatible",
    "openai_images": "medtest.systems.pictures.services:OpenAIImages",
    "original_shock": "medtest.systems.restoration.shock:OriginalShock",
    "pranet": "medtest.systems.segmentation.families:PraNetSystem",
    "predictions": "medtest.systems.adapters.folders.predictions:Predictions",
    "region_growing": "medtest.systems.segmentation.volumes.region_growing:RegionGrowing",
    "results": "medtest.systems.adapters.folders.predictions:Results",
    "sanet": "medtest.systems.segmentation.families:SANetSystem",
    "shape_prior": "medtest.systems.segmentation.volumes.shape_prior:ShapePrior",
    "simlab": "medtest.systems.answering.simlab:Simlab",
    "simlab_clinical": "medtest.systems.pictures.simlab_clinical:SimlabClinical",
    "simlab_images": "medtest.systems.pictures.simlab_images:SimlabImages",
    "smoothed_median": "medtest.systems.restoration.local_histogram:SmoothedMedian",
    "smoothed_shock": "medtest.systems.restoration.local_histogram:SmoothedShock",
    "smp": "medtest.systems.adapters.libraries.smp:Smp",
    "ssformer": "medtest.systems.segmentation.families:SSFormerSystem",
    "ssformer_l": "medtest.systems.segmentation.families:SSFormerLarge",
    "ssformer_s": "medtest.systems.segmentation.families:SSFormerSmall",
    "stability": "medtest.systems.pictures.services:Stability",
    "tganet": "medtest.systems.segmentation.families:TGANetSystem",
    "timm": "medtest.systems.adapters.libraries.timm_classifier:TimmClassifier",
    "torchscript": "medtest.systems.adapters.torchscript:TorchScript",
    "torchvision": "medtest.systems.adapters.libraries.torchvision_classifier:TorchvisionClassifier",
    "total_variation": "medtest.systems.restoration.libraries:TotalVariation",
    "transformers": "medtest.systems.answering.local_chat:LocalChat",
    "wavelet": "medtest.systems.restoration.libraries:Wavelet",
}
"""Systems by the name that suites and digests use; defaults are in ``conf/model/<name>.yaml``.

Other files there name one of these with ``use:``.
"""


def build_network(name: str, checkpoint: str | Path | None = None) -> nn.Module:
    """Return a published network as a bare ``torch.nn.Module`` in evaluation mode.

    Its ``forward`` has the signature of the official implementation, and its parameters have the published names.

    Args:
        name: A name of :data:`medtest.systems.pytorch.networks.PUBLISHED`: ``pranet``, ``sanet``, ``tganet``,
            ``ssformer_s``, ``ssformer_l``, and classifiers (``agdn``, ``dsinet``, …).
        checkpoint: Weights to load, in any form that :mod:`medtest.systems.checkpoints.checkpoint` reads; without a
            checkpoint, the weights are initialised at random.

    Raises:
        MedtestError: The name is unknown, or the checkpoint does not match the network.
    """
    from medtest.systems.checkpoints.checkpoint import load_strictly, read_state
    from medtest.systems.pytorch.networks import published

    network = published(name)
    if checkpoint is None:
        return network
    path = Path(checkpoint)
    return load_strictly(network, read_state(path), name=name, file=path.name)
