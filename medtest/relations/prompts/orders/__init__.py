"""Relations for prompts in controlled clinical English: a finding changes, or everything but the findings."""
