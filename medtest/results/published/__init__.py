"""Published figures that stand beside ours."""
