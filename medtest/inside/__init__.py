"""Features, saliency and attention inside a network, and how they change under follow-ups.

Works on any relation and any system whose network is an ``nn.Module``; nothing here changes either.
"""
