"""Network implementations, plain ``torch.nn.Module`` classes with the published parameter names.

Importing a module of this package imports torch; systems do so in ``open``.
"""
