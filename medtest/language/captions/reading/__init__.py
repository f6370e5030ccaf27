"""Readings of prompts as people write them: pool, command, style tags, absences, sizes, and reasons for doubt."""
