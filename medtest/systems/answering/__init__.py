"""Systems that answer questions about images: models over an API, and local vision-language checkpoints."""
