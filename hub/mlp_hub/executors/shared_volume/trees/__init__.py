"""Directory trees that programs may have filled: copied, measured and removed by descriptors."""
