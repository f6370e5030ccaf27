"""Networks that draw adversarial perturbations: the network, its arithmetic, and where trained ones lie.

Training makes them, the relation ``gap`` reads them; neither knows the other.
"""
