"""Features of training, clean and attacked images: embedded in the plane, and as numbers.

Figure 7 of Xu et al. 2021 (Medical Image Analysis) shows by t-SNE that clean test images lie among training images of
their class, the more so in deeper layers, and attacked ones do not. This module quantifies the claim: how often the
nearest training features have a case's class (k-NN accuracy), how separate the classes are (silhouette), and in which
layer follow-ups first move further than noise of equal size.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, PreparedSeed
from medtest.core.errors import typed_error
from medtest.inside.saliency import need
from medtest.relations.adversarial.attack import EpsilonLevel
from medtest.relations.adversarial.uniform_noise import UniformNoise

Embedding: TypeAlias = Literal["tsne", "umap", "none"]
NEIGHBOURS = 5
MOST_NOISE = 64
"""Follow-ups further from their source than this many levels are not compared with noise."""
TRAINING, CLEAN, FOLLOW_UP = "training", "clean", "follow-up"


@dataclass(eq=False)
class Features:
    """Pooled features of many images in several layers.

    Attributes:
        vectors: One float32 vector of length C per image, by layer.
        role: :data:`TRAINING`, :data:`CLEAN` or :data:`FOLLOW_UP`, one per image, as are the following.
        relation: "" if there is none.
        severity: 0 if there is none.
        label: The true label, "" if there is none.
        name: Name of the case.
    """

    vectors: dict[str, list[NDArray[np.float32]]] = field(default_factory=dict)
    role: list[str] = field(default_factory=list)
    relation: list[str] = field(default_factory=list)
    severity: list[int] = field(default_factory=list)
    label: list[str] = field(default_factory=list)
    name: list[str] = field(default_factory=list)

    def add(
        self,
        vectors: dict[str, NDArray[np.float32]],
        *,
        role: str,
        label: str,
        name: str,
        relation: str = "",
        severity: int = 0,
    ) -> None:
        """Add one image."""
        for layer, vector in vectors.items():
            self.vectors.setdefault(layer, []).append(vector)
        self.role.append(role)
        self.relation.append(relation)
        self.severity.append(severity)
        self.label.append(label)
        self.name.append(name)

    def of(self, role: str, relation: str = "", severity: int | None = None) -> list[int]:
        """Return the indices of images by role, relation and severity."""
        return [
            at
            for at, image_role in enumerate(self.role)
            if image_role == role and self.relation[at] == relation and severity in (None, self.severity[at])
        ]

    def matrix(self, layer: str, places: Sequence[int]) -> NDArray[np.float32]:
        """Return features of images in a layer, float32 N×C."""
        return np.stack([self.vectors[layer][place] for place in places])


def scaled(reference: NDArray[Any], *others: NDArray[Any]) -> list[NDArray[np.float64]]:
    """Return features standardised per channel by the mean and deviation of a reference; constant channels become 0."""
    mean, spread = reference.mean(axis=0, dtype=np.float64), reference.std(axis=0, dtype=np.float64)
    spread = np.where(spread > 0, spread, np.inf)
    return [(np.asarray(features, np.float64) - mean) / spread for features in (reference, *others)]


def neighbours_accuracy(
    reference: NDArray[Any], labels: Sequence[str], queries: NDArray[Any], truth: Sequence[str]
) -> float | None:
    """Return the share of images whose k nearest reference features have the true label by majority; None without any.

    Args:
        reference: N×C, with ``labels``.
        labels: Labels of the reference features.
        queries: M×C, with ``truth``.
        truth: True labels of the queried features.
    """
    if len(reference) == 0 or len(queries) == 0 or len(set(labels)) < 2:
        return None
    need("sklearn", "inside", "k-NN accuracy")
    from sklearn.neighbors import KNeighborsClassifier

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)  # sets of labels are classes too
        classifier = KNeighborsClassifier(n_neighbors=min(NEIGHBOURS, len(reference))).fit(reference, list(labels))
        return float(classifier.score(queries, list(truth)))


def silhouette(features: NDArray[Any], labels: Sequence[str]) -> float | None:
    """Return the mean silhouette of classes, in [-1, 1]; None with fewer than two classes or only singletons.

    Args:
        features: N×C.
        labels: Labels of the rows.
    """
    if not 2 <= len(set(labels)) < len(features):
        return None
    need("sklearn", "inside", "silhouette")
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(features, list(labels)))


def embedded(features: NDArray[Any], method: Embedding, seed: int) -> NDArray[np.float64] | None:
    """Return features in the plane, float64 N×2; None for ``none`` and for fewer than five images.

    Args:
        features: N×C.
        method: ``tsne``, ``umap`` or ``none``.
        seed: Seed of the random start.

    Raises:
        UserMistakes: Its library is not installed.
    """
    if method not in ("tsne", "umap", "none"):
        raise typed_error("embedding", str(method), "tsne, umap, none")
    if method == "none" or len(features) < 5:
        return None
    if method == "umap":
        need("umap", "umap", "embedding=umap")
        import umap

        reducer = umap.UMAP(n_neighbors=min(15, len(features) - 1), random_state=seed % 2**32, n_jobs=1)
        return np.asarray(reducer.fit_transform(features), np.float64)
    need("sklearn", "inside", "embedding=tsne")
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(features) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init="pca" if features.shape[1] > 1 else "random", random_state=seed % 2**32)
    return np.asarray(tsne.fit_transform(features), np.float64)


def noise_of(seed: PreparedSeed, followup: Image, noise_seed: int) -> Image | None:
    """Return a source with uniform noise of the size of its follow-up: ε is their L∞ distance, in whole levels.

    Args:
        seed: The prepared source case.
        followup: uint8 H×W×3.
        noise_seed: Seed of the noise.

    Returns:
        uint8 H×W×3, made like the relation ``uniform_noise`` on the field of view; None if the follow-up equals the
        source, or is so far from it that such noise would hide the image (:data:`MOST_NOISE`).
    """
    epsilon = int(np.abs(followup.astype(np.int16) - seed.image.astype(np.int16)).max(initial=0))
    if not 0 < epsilon <= MOST_NOISE:
        return None
    relation = UniformNoise(UniformNoise.Settings(severities=[1], levels={1: EpsilonLevel(epsilon=epsilon)}))
    params: dict[str, Any] = {"epsilon": float(epsilon), "where": "field", "noise_seed": noise_seed}
    return relation.apply(seed, params).image
