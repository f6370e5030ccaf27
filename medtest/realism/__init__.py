"""Realism of made artefacts: their statistics, patches and seams against real ones that the user has.

``options`` reads the settings, ``folders`` the real pictures, ``made`` makes the artefacts of a suite, ``measures`` and
``outlines`` measure both, ``compared`` puts them side by side, ``patches`` and ``seams`` ask a fixed classifier
(``classifier``) to tell them apart, ``run`` does all of it and ``page`` writes tables and the page.
"""
