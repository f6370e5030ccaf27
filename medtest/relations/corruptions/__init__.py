"""Fourteen common corruptions, as single pictures of five severities and as sequences of small steps.

Constants of single pictures are those of ImageNet-C, formulas of sequences those of ImageNet-P, both by D. Hendrycks
and T. Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations", ICLR 2019, and
their published code; M. Xu et al., "Towards evaluating the robustness of deep diagnostic models by adversarial attack",
Medical Image Analysis 2021, section 4.4, use the first ten frames of such sequences on medical images.
"""
