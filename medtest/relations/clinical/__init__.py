"""Relations for endoscopy pictures: lighting, motion, highlights, text on the screen."""
