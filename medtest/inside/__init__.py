"""What happens inside a network under follow-ups: features, saliency, attention, and how they move.

Works on any relation and any system whose network is an ``nn.Module``; nothing here changes either.
"""
