"""Defences of classifiers (Xu et al. 2021, section 4.5): training steps that attack their own batch first."""
