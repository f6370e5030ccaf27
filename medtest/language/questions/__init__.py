"""Visual question answering: questions, typed answers, expectations, flips and accuracy.

These are pure functions of texts and tables that call no model; the runner builds on them.
"""
