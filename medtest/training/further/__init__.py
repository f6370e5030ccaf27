"""Further training on perturbed images (report RQ3, slides RQ2): recipes, data, the resumable loop."""
