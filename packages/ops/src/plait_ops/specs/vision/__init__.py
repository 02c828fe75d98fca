"""Detection: boxes, regions of images, convolutions with offsets."""
