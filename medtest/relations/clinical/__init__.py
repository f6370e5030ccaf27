"""Relations of endoscopy pictures: lighting, motion, highlights, text on the screen."""
