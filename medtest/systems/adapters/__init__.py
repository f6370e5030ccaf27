"""Systems made elsewhere: a user's function, an exported graph, a folder of predictions.

What they take and give is the interface of :mod:`medtest.systems.border`.
"""
