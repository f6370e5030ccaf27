"""Networks from libraries, with the user's weights: transformers, timm, torchvision, segmentation_models_pytorch."""
