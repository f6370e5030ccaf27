"""Image filters, from their papers or from libraries: denoising, sharpening, enhancement."""
