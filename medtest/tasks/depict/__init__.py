"""Pictures that are drawn from prompts."""
