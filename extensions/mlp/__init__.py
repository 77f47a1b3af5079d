"""MLP Hub in your notebook and your training program."""
