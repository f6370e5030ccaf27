"""Networks that turn pictures into features, and the features of pictures, kept by content.

Figures of pictures (:mod:`medtest.results.fidelity`) are made of these. A network that is not the one a figure is named
after gives the figure another name: ``FD-embed`` is no FID.
"""
