"""Visual question answering: questions, typed answers, expectations, flips and accuracy.

Pure functions of texts and tables: nothing here calls a model. The runner's rooms use this one.
"""
