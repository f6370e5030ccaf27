"""The command line of a run: what was typed → Hydra → jobs → what is printed → exit code."""
