"""Scales of uncertainty of an image: noise of cameras and scanners, blur, compression, uneven sensitivity."""
