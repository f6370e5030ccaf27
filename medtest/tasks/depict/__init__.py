"""Task depict: pictures generated from prompts."""
