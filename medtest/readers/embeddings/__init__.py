"""Networks that turn pictures into features, and a file that stores the features by content.

They are the basis of picture metrics (:mod:`medtest.results.fidelity`). A metric computed with another network than the
one it is named after gets a different name: ``FD-embed`` instead of FID.
"""
