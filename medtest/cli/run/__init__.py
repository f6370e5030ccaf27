"""Command line of a run: tokens → Hydra → jobs → printed results → exit code."""
