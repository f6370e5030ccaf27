"""Captum's saliency against torch's own gradients."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from medtest.inside.saliency import saliency_of


def _score():
    torch.manual_seed(1)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    return network.eval().double().float()


def _images():
    return list(np.random.default_rng(0).integers(0, 256, (3, 9, 8, 3), dtype=np.uint8))


def test_gradient_saliency_is_the_largest_absolute_gradient():
    network, images = _score(), _images()
    saliency = saliency_of(lambda x: network(x)[:, 1], images)
    x = torch.tensor(np.stack(images)).permute(0, 3, 1, 2).float() / 255
    x.requires_grad_(True)
    (gradient,) = torch.autograd.grad(network(x)[:, 1].sum(), x)
    np.testing.assert_allclose(saliency, gradient.abs().amax(dim=1).numpy(), rtol=1e-5, atol=1e-9)
    assert saliency.shape == (3, 9, 8)


def test_integrated_gradients_of_a_linear_score_are_its_weights_times_the_image():
    weights = torch.randn(3, 9, 8, generator=torch.Generator().manual_seed(2))
    images = _images()
    saliency = saliency_of(lambda x: (x * weights).sum(dim=(1, 2, 3)), images, method="integrated")
    x = np.stack(images).transpose(0, 3, 1, 2) / 255
    np.testing.assert_allclose(saliency, np.abs((x * weights.numpy()).sum(axis=1)), rtol=1e-4, atol=1e-5)
