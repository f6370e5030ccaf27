"""Networks of libraries with weights of the user's: transformers, timm, torchvision, segmentation_models_pytorch."""
