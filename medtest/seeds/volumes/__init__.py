"""Files that hold several images or voxels, and seeds that are series or volumes."""
