"""Systems that generate pictures from prompts: API services, local pipelines, stored pictures."""
