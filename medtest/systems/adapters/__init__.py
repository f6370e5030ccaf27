"""Systems made elsewhere: a user's function, an exported graph, a command-line tool, a folder of answers.

What they take and give is the interface of :mod:`medtest.core.tasks.border`.
"""
