"""Checks that an answer is fully understood; unexplained parts make it ``unparsed``."""
