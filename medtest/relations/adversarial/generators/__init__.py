"""Generator networks of adversarial perturbations: network, arithmetic, and files of trained ones.

Training writes the files and the relation ``gap`` reads them; neither depends on the other.
"""
