"""Python interface of a run: arguments, execution and result."""
